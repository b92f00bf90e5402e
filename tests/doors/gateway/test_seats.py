"""Where a guest's requests sit: nobody there is asked, and what its session alone used ends with it."""

import asyncio

import pytest

from checkrein.doors.gateway.messages import MISSING_CAPABILITY, RpcError, notification
from checkrein.doors.gateway.seats import Latest, Seat, Seats
from doors.gateway.back import is_running
from doors.gateway.loop_turns import loop_turns
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import soon


class Silent:
    def send(self, message):
        """Nobody hears it."""


def progress(**params):
    return notification("notifications/progress", params)


@pytest.mark.invariant("what a server asks reaches nobody through a guest, and is never answered yes")
def test_nobody_at_a_seat_is_asked_anything(house):
    async def work():
        seat = Seat("chat", "s1")
        assert (seat.id, seat.visit.session, seat.speaks_for_person) == ("chat:s1", "s1", False)
        # Whoever is told what it can do is told nothing.
        assert seat.capabilities == {}
        assert await seat.ask("roots/list", {}) == {"roots": []}
        for method in ("elicitation/create", "sampling/createMessage"):
            with pytest.raises(RpcError) as told:
                await seat.ask(method, {})
            assert told.value.code == MISSING_CAPABILITY

    asyncio.run(work())


def test_a_question_is_remembered_for_the_flight_it_belongs_to(house):
    async def work():
        async with house.opened() as hub:
            seats = Seats(hub)
            with (
                seats.flight("chat", "s1", "one", Silent()) as (seat, one),
                seats.flight("chat", "s1", "two", Silent()) as (same, _),
            ):
                assert same is seat and hub.clients["chat:s1"] is seat
                with pytest.raises(RpcError):
                    await seat.ask("elicitation/create", {}, one)
                assert seat.asked == {"one"}
                # One that says not which it is about can be about any.
                with pytest.raises(RpcError):
                    await seat.ask("elicitation/create", {})
                assert seat.asked == {"one", "two"}
            assert seat.asked == set() and seat.flights == {}

    asyncio.run(work())


def test_a_seat_that_stays_empty_is_given_away(house, user_settings):
    user_settings("[gateway]\nidle_seconds = 600\n")

    async def work():
        async with house.opened() as hub:
            seats = Seats(hub)
            with seats.flight("chat", "s1", "one", Silent()) as (seat, _):
                await pass_seconds(700)
                assert hub.clients["chat:s1"] is seat
            await pass_seconds(400)
            with seats.flight("chat", "s1", "two", Silent()) as (same, _):
                assert same is seat
            # Its time begins again.
            await pass_seconds(400)
            assert "chat:s1" in hub.clients
            await pass_seconds(400)
            assert "chat:s1" not in hub.clients
            assert seats.seat("chat", "s1") is not seat

    run_on_moved_loop(work())


def test_each_session_has_a_private_servers_process_of_its_own(visitor, user_settings):
    user_settings("[gateway]\nidle_seconds = 600\n")
    visitor.house.server(trusted=True, share="client")
    visitor.open()

    async def work():
        one, again = [(await visitor.made("env", session="s1")).text for _ in range(2)]
        # From here on nobody waits long for a session to come back.
        user_settings("[gateway]\nidle_seconds = 1\n")
        two, last = [(await visitor.made("env", session=session)).text for session in ("s2", "s1")]
        assert one == again != two
        shared = visitor.gateway.servers()[0]["pid"]
        assert str(shared) not in (one, two)
        await soon(lambda: not any(is_running(int(each)) for each in (one, two, last)))
        assert is_running(shared) and [each["label"] for each in visitor.gateway.clients()] == []

    asyncio.run(work())


def test_another_clients_question_is_not_a_guests_and_the_other_way_round(house, add):
    """INVARIANT: a question that could be another client's reaches nobody."""
    add("allow", "*")

    async def work():
        house.server(share="shared")
        async with house.opened() as hub:
            client = await house.guest()
            seats = Seats(hub)
            with seats.flight("chat", "s1", "one", Silent()) as (seat, flight):
                flight.upstream = await hub.fleet.reach("srv", seat)
                await client.call("srv__elicit")
                assert client.asked == [] and seat.asked == set()

    asyncio.run(work())


@pytest.mark.invariant("however fast a server says how far it is, one word of it waits to be told")
def test_how_far_it_is_is_told_as_the_latest_word_of_it():
    async def work():
        heard = []
        latest = Latest(asyncio.get_running_loop(), heard.append)
        for step in range(1_000):
            latest.send(progress(progress=step, total=1_000))
        await loop_turns()
        assert heard == ["999 of 1000"]
        latest.send(progress(progress=1.5))
        await loop_turns()
        latest.send(progress(message="x" * 10_000, progress=2))
        latest.send(notification("notifications/message", {"data": "no step"}))
        await loop_turns()
        assert heard[1:] == ["1.5", "x" * 500]
        latest.send(progress(progress=3))
        latest.over = True
        await loop_turns()
        assert len(heard) == 3

    asyncio.run(work())


@pytest.mark.parametrize("step", [None, "1", [1], 10**400, float("inf"), True, -1])
def test_whatever_a_server_calls_its_progress_is_a_line(step):
    async def work():
        heard = []
        latest = Latest(asyncio.get_running_loop(), heard.append)
        latest.send(progress(progress=step, total=step, message=step))
        await loop_turns()
        assert len(heard) == 1 and isinstance(heard[0], str)

    asyncio.run(work())


def test_a_loop_that_is_over_is_told_nothing():
    loop = asyncio.new_event_loop()
    loop.close()
    Latest(loop, lambda _text: None).send(progress(progress=1))
