"""The servers behind the gateway: read from the file, read again on change, never lost to a bad edit."""

import asyncio
import os

import pytest

from checkrein.doors.gateway.keeper import Unreachable
from checkrein.errors import NotFoundError
from doors.gateway.back import is_running
from doors.gateway.house import told
from patience import soon


@pytest.fixture(autouse=True)
def everything_is_allowed(add):
    add("allow", "*")
    add("allow", "echo", server="two")


def run(house, work):
    async def main():
        house.server()
        async with house.opened():
            await work(await house.guest())

    asyncio.run(main())


def pid(house, name="srv"):
    return house.hub.fleet.keeper(name).status()["pid"]


def test_a_server_that_is_added_is_there_at_once(house):
    async def work(guest):
        assert not house.hub.fleet.look()
        house.server("two")
        assert house.hub.fleet.look() and house.hub.fleet.names == ["srv", "two"]
        before = pid(house)
        await house.settled()
        house.accept("two")
        assert guest.methods() == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ] or (guest.methods() == ["notifications/prompts/list_changed", "notifications/tools/list_changed"])
        assert told(await guest.call("two__echo")) == "said {}"
        assert pid(house) == before, "the other one goes on"

    run(house, work)


def test_a_server_that_is_removed_is_gone_and_so_is_its_process(house):
    async def work(guest):
        process = pid(house)
        house.specs.clear()
        house.write()
        assert house.hub.fleet.look()
        assert (await guest.ask("tools/list"))["tools"] == []
        assert "notifications/tools/list_changed" in guest.methods()
        assert (await guest.error("tools/call", {"name": "srv__echo"}))["code"] == -32602
        await soon(lambda: not is_running(process))
        with pytest.raises(NotFoundError):
            house.hub.fleet.spec("srv")
        with pytest.raises(Unreachable):
            await house.hub.fleet.reach("srv", guest.client)

    run(house, work)


def test_a_server_that_is_changed_is_started_anew(house):
    async def work(guest):
        process = pid(house)
        house.specs["srv"]["env"]["SAYS"] = "Something else."
        house.write()
        assert house.hub.fleet.look()
        await house.settled()
        await soon(lambda: not is_running(process))
        assert told(await guest.call("srv__echo")) == "said {}", "what was accepted stays accepted"

    run(house, work)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"mcpServers": {"srv": {}}}', '{"mcpServers": {"a b": {"command": "x"}}}']
)
@pytest.mark.invariant("a broken edit keeps the last good configuration, and says so")
def test_a_broken_edit_keeps_the_last_good_file_and_says_so_once(house, text):
    async def work(guest):
        process, said = pid(house), len(house.said)
        house.write(text)
        assert not house.hub.fleet.look() and not house.hub.fleet.look()
        assert house.hub.fleet.fault and "the last good one stays in force" in house.said[said]
        assert len(house.said) == said + 1
        assert told(await guest.call("srv__echo")) == "said {}" and pid(house) == process
        house.write()
        assert not house.hub.fleet.look() and house.hub.fleet.fault == ""
        assert pid(house) == process

    run(house, work)


def test_a_server_that_is_switched_off_is_not_started(house):
    async def main():
        house.server(enabled=False)
        async with house.opened():
            guest = await house.guest()
            assert (await guest.ask("tools/list"))["tools"] == []
            assert house.hub.fleet.ready() == []
            assert house.hub.fleet.keeper("srv").status()["state"] == "stopped"

    asyncio.run(main())


def test_a_server_that_cannot_be_started_holds_up_nobody(house):
    async def main():
        house.server()
        house.specs["bad"] = {"command": "/no/such/program"}
        house.write()
        async with house.opened():
            guest = await house.guest()
            assert told(await guest.call("srv__echo")) == "said {}"
            assert any("bad could not be started" in line for line in house.said)

    asyncio.run(main())


def test_everything_ends_with_the_gateway(house):
    async def main():
        house.server()
        async with house.opened():
            process = pid(house)
            assert is_running(process) and process != os.getpid()
        assert not is_running(process)

    asyncio.run(main())


@pytest.mark.invariant("who is alone with a server now was not alone with it before")
def test_who_uses_a_connection_is_known_until_they_leave_and_that_somebody_did_after(house):
    async def work(guest):
        await guest.call("srv__echo")
        (upstream,) = house.hub.fleet.ready()
        assert upstream.users == {guest.client.id}
        for _ in range(3):
            other = await house.guest(agent="other")
            await other.call("srv__echo")
            other.leave()
        assert len(upstream.users) == 2 and guest.client.id in upstream.users
        assert house.hub.fleet.used_by(guest.client) == [upstream]

    run(house, work)
