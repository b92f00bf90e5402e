"""Who is connected: what they can be asked, what they asked for, and time that stands still."""

import asyncio

import pytest

from checkrein.doors.gateway.clients import Client, Flight, Visit, read_envelope
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INFO_KEY,
    LEVEL_KEY,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    response,
)
from own_time import run_in_own_time


class Ear:
    def __init__(self):
        self.heard = []

    def send(self, message):
        self.heard.append(message)


def client(era=HANDSHAKE, **capabilities):
    ear = Ear()
    made = Client(era=era, agent="a", label="l", owner="o", visit=Visit("s"), send=ear.send)
    made.capabilities, made.ear = capabilities, ear
    return made


@pytest.mark.parametrize(
    ("declared", "kind", "can"),
    [
        ({}, "form", True),
        ({}, "url", False),
        ({"form": {}}, "form", True),
        ({"url": {}}, "form", False),
        ({"url": {}}, "url", True),
        ({"form": True}, "form", False),
        (None, "form", False),
        (True, "form", False),
        ([], "", False),
    ],
)
def test_a_client_can_be_asked_what_it_declared(declared, kind, can):
    assert client(elicitation=declared).can("elicitation", kind) is can


def test_what_was_not_declared_cannot_be_asked():
    assert not client().can("roots") and client(roots={}).can("roots")


@pytest.mark.invariant(
    "nobody who did not read the question can answer it, not even one who can write to the pipe its "
    "client answers through"
)
def test_the_number_of_a_question_cannot_be_guessed():
    """A program of the same user may write into the pipe a client answers through, without reading it."""

    async def main():
        numbers = []
        for _ in range(2):
            one = client()
            asking = asyncio.ensure_future(one.ask("elicitation/create", {}))
            await asyncio.sleep(0)
            for guess in range(10):
                one.answered(response(f"checkrein-{guess}", {"action": "accept"}))
            assert not asking.done()
            numbers.append(one.ear.heard[0]["id"])
            one.answered(response(numbers[-1], {"action": "decline"}))
            assert await asking == {"action": "decline"}
        assert numbers[0] != numbers[1]

    asyncio.run(main())


@pytest.mark.invariant("an answer reaches only what was asked of this very client")
def test_an_answer_reaches_only_what_was_asked_of_this_very_client():
    async def main():
        one, two = client(), client()
        asking = asyncio.ensure_future(one.ask("roots/list", {}))
        await asyncio.sleep(0)
        (asked,) = one.ear.heard
        two.answered(response(asked["id"], "two's"))
        for odd in (7, None, "checkrein-2", "x"):
            one.answered({"id": odd, "result": 1})
        assert not asking.done()
        one.answered(response(asked["id"], "one's"))
        one.answered(response(asked["id"], "late"))
        assert await asking == "one's" and one._asked == {}

    asyncio.run(main())


def test_a_question_goes_where_its_request_is_and_is_taken_back_there():
    async def main():
        made, exchange = client(), Ear()
        flight = Flight(made, 1, exchange)
        asking = asyncio.ensure_future(made.ask("elicitation/create", {"m": 1}, flight))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        asked, taken_back = exchange.heard
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"] == {"requestId": asked["id"]} and made.ear.heard == []
        assert made._asked == {}

    asyncio.run(main())


def test_an_error_is_raised():
    async def main():
        made = client()
        asking = asyncio.ensure_future(made.ask("roots/list", {}))
        await asyncio.sleep(0)
        made.answered({"id": made.ear.heard[0]["id"], "error": {"code": -1, "message": "no"}})
        with pytest.raises(RpcError, match="no"):
            await asking

    asyncio.run(main())


def test_who_is_gone_waits_for_nothing():
    async def main():
        made = client()
        asking = asyncio.ensure_future(made.ask("roots/list", {}))
        await asyncio.sleep(0)
        flight = made.flights[1] = Flight(made, 1, made.ear)
        flight.task = asyncio.ensure_future(asyncio.Event().wait())
        made.gone()
        for task in (asking, flight.task):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert flight.cancelled

    asyncio.run(main())


def test_time_stands_still_while_somebody_is_asked_and_goes_on_with_what_was_left():
    async def main():
        loop, flight = asyncio.get_running_loop(), Flight(client(), 1, Ear())
        async with asyncio.timeout(0.2) as flight.limit:
            with flight.waiting():
                assert flight.limit.when() is None
                with flight.waiting():
                    await asyncio.sleep(0.3)
                assert flight.limit.when() is None, "somebody else is still asked"
            assert 0 < flight.limit.when() - loop.time() <= 0.2
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05) as flight.limit:
                with flight.waiting():
                    await asyncio.sleep(0.1)
                await asyncio.sleep(5)

    run_in_own_time(main)


def test_time_that_is_over_or_was_never_set_is_left_alone():
    async def main():
        flight = Flight(client(), 1, Ear())
        with flight.waiting():
            pass
        async with asyncio.timeout(60) as limit:
            flight.limit = limit
            asked = flight.waiting()
            asked.__enter__()
            flight.limit = None
        asked.__exit__(None, None, None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0) as flight.limit:
                try:
                    await asyncio.sleep(1)
                finally:
                    with flight.waiting():
                        pass

    run_in_own_time(main)


@pytest.mark.parametrize(
    ("era", "own", "level", "wants"),
    [
        (HANDSHAKE, "", "debug", True),
        (HANDSHAKE, "warning", "info", False),
        (HANDSHAKE, "warning", "warning", True),
        (HANDSHAKE, "warning", "emergency", True),
        (HANDSHAKE, "warning", "odd", True),
        (HANDSHAKE, "warning", ["x"], True),
        (STATELESS, "", "emergency", False),
        (STATELESS, "info", "error", True),
    ],
)
def test_a_log_line_is_wanted_from_a_level_on(era, own, level, wants):
    made = client(era)
    made.level = own
    assert made.wants_level(level) is wants


def test_an_envelope_says_who_sends_a_request():
    made = client(STATELESS)
    meta = {
        VERSION_KEY: "2026-07-28",
        CAPABILITIES_KEY: {"roots": {}},
        INFO_KEY: {"name": "n"},
        LEVEL_KEY: "info",
    }
    read_envelope(made, {"_meta": meta}, ("2026-07-28",))
    assert (made.version, made.capabilities, made.info, made.level) == (
        "2026-07-28",
        {"roots": {}},
        {"name": "n"},
        "info",
    )
    read_envelope(made, {"_meta": {**meta, INFO_KEY: 7, LEVEL_KEY: "loud"}}, ("2026-07-28",))
    assert (made.info, made.level) == ({}, "")
    read_envelope(made, {"_meta": {**meta, LEVEL_KEY: ["info"]}}, ("2026-07-28",))
    assert made.level == ""


@pytest.mark.parametrize("params", [{}, {"_meta": 7}, {"_meta": {VERSION_KEY: "2026-07-28"}}])
def test_an_envelope_that_is_not_whole_is_refused(params):
    with pytest.raises(RpcError):
        read_envelope(client(STATELESS), params, ("2026-07-28",))


def test_a_version_nobody_speaks_is_refused_with_those_we_do():
    meta = {VERSION_KEY: "9" * 100, CAPABILITIES_KEY: {}}
    with pytest.raises(RpcError) as found:
        read_envelope(client(STATELESS), {"_meta": meta}, ("2026-07-28",))
    assert found.value.code == UNSUPPORTED_VERSION and found.value.data["supported"] == ["2026-07-28"]


def test_ids_cannot_be_guessed():
    assert len({client().id for _ in range(100)}) == 100 and len(client().id) >= 32
