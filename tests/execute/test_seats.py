"""Seats: who waits gives way, who runs is waited for, and none is lost."""

import asyncio

import pytest

from checkrein.execute.seats import Seats
from patience import PATIENCE


def test_who_has_waited_longest_gives_way():
    async def main():
        seats, left = Seats(2), []

        def leaver(name):
            async def leave():
                left.append(name)
                seats.give()

            return leave

        for name in ("a", "b"):
            await seats.take()
            seats.rest(hash(name), leaver(name))
        await seats.take()
        assert left == ["a"]
        seats.wake(hash("b"))
        waiting = asyncio.ensure_future(seats.take())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert seats.crowded
        seats.give()
        await waiting
        assert left == ["a"]
        assert not seats.crowded

    asyncio.run(main())


def test_a_seat_handed_to_somebody_who_left_is_not_lost():
    async def main():
        seats = Seats(1)
        await seats.take()
        gone, late = asyncio.ensure_future(seats.take()), asyncio.ensure_future(seats.take())
        await asyncio.sleep(0)
        seats.give()
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        await asyncio.wait_for(late, PATIENCE)
        cancelled = asyncio.ensure_future(seats.take())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        seats.give()
        await asyncio.wait_for(seats.take(), PATIENCE)

    asyncio.run(main())
