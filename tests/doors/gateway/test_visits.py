"""Sessions of the gateway's clients: what one has read is stored, and a restart changes nothing about it."""

import asyncio

import pytest

from checkrein.doors.gateway.messages import STATELESS
from checkrein.doors.gateway.visits import SESSION_PAUSE
from doors.gateway.house import House
from patience import soon


def rows(pipeline):
    return pipeline.store.query("SELECT reader, tainted_by FROM gateway_session")


async def restarted(house):
    """Another server on the same store."""
    await house.close()
    again = House(house.pipeline, house.folder)
    again.specs = house.specs
    return await again.open()


def run(house, work):
    async def main():
        house.server()
        await house.open()
        found = await work()
        await (found or house).close()

    asyncio.run(main())


@pytest.mark.invariant("a reader of untrusted words is still one after a restart")
@pytest.mark.parametrize("era", ["handshake", STATELESS])
def test_what_a_client_has_read_is_known_after_a_restart(house, add, era):
    async def work():
        reads = await house.guest() if era != STATELESS else house.passing()
        await reads.call("srv__echo")
        again = await restarted(house)
        same = await again.guest() if era != STATELESS else again.passing()
        other = await again.guest(owner="test:2")
        assert [each.client.visit.tainted_by for each in (await seen(same), await seen(other))] == ["srv", ""]
        return again

    async def seen(guest):
        await guest.ask("tools/list")
        return guest

    add("allow", "*")
    run(house, work)


@pytest.mark.invariant("a reader of untrusted words is still one after a restart")
def test_an_agent_that_starts_another_pump_has_read_what_it_has_read(house, add):
    """The pump ends with our server, so the owner of the new connection is another process."""

    async def work():
        hub = house.hub
        first = hub.meet(
            era="handshake", agent="a", label="a", owner="stdio:7-1", send=print, reader="stdio:5-1"
        )
        await hub.visits.taint(first.visit, "srv")
        again = await restarted(house)
        meet = again.hub.meet
        second = meet(
            era="handshake", agent="a", label="a", owner="stdio:8-1", send=print, reader="stdio:5-1"
        )
        third = meet(era="handshake", agent="a", label="a", owner="stdio:9-1", send=print, reader="stdio:6-1")
        assert (second.visit.tainted_by, third.visit.tainted_by) == ("srv", "")
        return again

    run(house, work)


def test_a_client_that_comes_back_late_begins_anew(house, add, clock):
    async def work():
        await (await house.guest()).call("srv__echo")
        again = await restarted(house)
        clock.now += SESSION_PAUSE
        assert (await again.guest()).client.visit.tainted_by == ""
        return again

    add("allow", "*")
    run(house, work)


def test_a_session_that_ended_is_forgotten(house, add, pipeline):
    async def work():
        guest = await house.guest()
        await guest.call("srv__echo")
        assert rows(pipeline) == [("test:1", "srv")]
        guest.leave()
        await soon(lambda: rows(pipeline) == [])
        assert (await house.guest()).client.visit.tainted_by == ""

    add("allow", "*")
    run(house, work)


def test_it_is_written_before_the_client_hears_the_words(house, add, pipeline):
    async def work():
        guest = await house.guest()
        for _ in range(3):
            await guest.call("srv__echo")
            assert rows(pipeline) == [("test:1", "srv")]

    add("allow", "*")
    run(house, work)
