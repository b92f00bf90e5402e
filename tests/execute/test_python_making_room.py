"""Scripts that give way: whoever they make room for may change their mind, and they go on unharmed."""

import asyncio

import pytest

from checkrein.execute.seats import Seats
from patience import PATIENCE


@pytest.mark.invariant("who makes room is not interrupted where whoever wanted it is ended meanwhile")
def test_who_leaves_for_somebody_that_gave_up_leaves_in_peace():
    """A script that stands in line and is ended must not interrupt another one on its way out."""

    async def main():
        seats, left, going, may_go = Seats(1), [], asyncio.Event(), asyncio.Event()

        async def leave():
            going.set()
            await may_go.wait()
            left.append("whole")
            seats.give()

        await seats.take()
        seats.rest(1, leave)
        impatient = asyncio.ensure_future(seats.take())
        await going.wait()
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        may_go.set()
        await asyncio.wait_for(seats.take(), PATIENCE)
        assert left == ["whole"]

    asyncio.run(main())
