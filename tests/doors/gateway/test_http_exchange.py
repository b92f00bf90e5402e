import asyncio
from types import SimpleNamespace

import pytest

from checkrein.doors.gateway.event_stream import EventStream, event
from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.http_trail import Trails
from checkrein.doors.gateway.messages import notification, request, response
from doors.gateway.talking import Taken


class Wire(Taken):
    aborted = 0

    def abort(self):
        self.aborted += 1


def in_loop(test):
    """Runs with an exchange of its own, in a task that can be cancelled."""

    async def run():
        wire = Wire(asyncio.current_task())
        return await test(wire, Exchange(wire, 0.0, wire.abort))

    asyncio.run(run())


def test_events_go_before_the_answer():
    async def test(wire, exchange):
        note, answer = notification("n"), response(1, {})
        exchange.send(note)
        exchange.send(note)
        await exchange.finish(answer)
        assert wire.body == event(note) * 2 + event(answer)
        assert wire.ended

    in_loop(test)


async def is_cancelled():
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        asyncio.current_task().uncancel()
        return True
    return False


def test_who_left_alone_is_cancelled():
    async def test(wire, exchange):
        exchange.lose()
        assert await is_cancelled()
        exchange.send(notification("n"))
        assert (wire.status, wire.parts, exchange.why) == (0, [], "lost")

    in_loop(test)


def test_in_a_session_it_goes_on_and_questions_find_another_way():
    async def test(wire, exchange):
        delivered = []
        older = SimpleNamespace(version="2025-06-18")
        exchange.session = SimpleNamespace(deliver=delivered.append, stream=None, client=older)
        exchange.cancels, exchange.read = False, True
        exchange.send(notification("before"))
        exchange.lose()
        await asyncio.sleep(0)
        exchange.send(notification("after"))
        exchange.send(request(1, "elicitation/create"))
        assert delivered == [request(1, "elicitation/create")]
        await exchange.finish(response(1, {}))
        assert b"after" not in wire.body

    in_loop(test)


@pytest.mark.parametrize("listens", [False, True])
def test_a_newer_client_finds_everything_when_it_comes_back(listens):
    async def test(wire, exchange):
        delivered, trails = [], Trails()
        exchange.session = SimpleNamespace(
            deliver=delivered.append,
            stream=object() if listens else None,
            client=SimpleNamespace(version="2025-11-25"),
            trails=trails,
        )
        exchange.cancels, exchange.read = False, True
        exchange.send(notification("before"))
        await asyncio.sleep(0)
        assert b"id: 1-0\n" in wire.body
        exchange.lose()
        exchange.send(request(1, "elicitation/create"))
        await exchange.finish(response(1, {}))
        other = Wire()
        stream = EventStream(other)
        trails.find(b"1-1")[0].follow(stream, 1)
        await stream.run()
        asked = b"elicitation/create" in other.body
        assert (asked, delivered) == (not listens, [request(1, "elicitation/create")] if listens else [])
        assert event(response(1, {})) in other.body
        assert b"before" not in other.body

    in_loop(test)


def test_a_body_that_is_lost_halfway_is_not_waited_for():
    async def test(wire, exchange):
        exchange.cancels = False
        exchange.lose()
        assert await is_cancelled()

    in_loop(test)


def test_the_first_reason_stays():
    async def test(wire, exchange):
        exchange.give_up("revoked", cancel=False)
        exchange.lose()
        assert exchange.why == "revoked"
        assert not await is_cancelled()

    in_loop(test)


def test_a_stream_that_gave_up_ends_the_connection():
    async def test(wire, exchange):
        exchange.open_stream().lose()
        exchange.send(notification("n"))
        assert wire.aborted == 1

    in_loop(test)
