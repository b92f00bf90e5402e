"""Scripts that give way: whoever they make room for may change their mind, and they go on unharmed."""

import asyncio

from checkrein.execute.seats import Seats
from patience import PATIENCE


def test_who_leaves_for_somebody_that_gave_up_leaves_in_peace():
    """A script that stands in line and is ended must not interrupt another one on its way out."""

    async def main():
        seats, left, going = Seats(1), [], asyncio.Event()

        async def leave():
            going.set()
            await asyncio.sleep(0.1)
            left.append("whole")
            seats.give()

        await seats.take()
        seats.rest(1, leave)
        impatient = asyncio.ensure_future(seats.take())
        await going.wait()
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        await asyncio.wait_for(seats.take(), PATIENCE)
        assert left == ["whole"]

    asyncio.run(main())
