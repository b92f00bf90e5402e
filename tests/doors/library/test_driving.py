"""The same steps, carried out in a thread or on an event loop."""

import asyncio
import threading

import pytest

from checkrein.doors.library.driving import drive, drive_async, in_thread
from patience import PATIENCE, until


def fails():
    raise LookupError("x")


def steps(seen):
    seen.append((yield "here", lambda: 1))
    seen.append((yield "away", threading.get_ident))
    try:
        yield "away", fails
    except LookupError as error:
        seen.append(str(error))
    return (yield "tool", lambda: 4)


def test_in_this_thread():
    seen = []
    assert drive(steps(seen)) == 4
    assert seen == [1, threading.get_ident(), "x"]


def test_on_a_loop_what_takes_long_is_done_away():
    seen = []
    assert asyncio.run(drive_async(steps(seen))) == 4
    assert seen[0] == 1 and seen[1] != threading.get_ident() and seen[2] == "x"


def test_a_tools_own_coroutine_is_awaited():
    async def tool():
        await asyncio.sleep(0)
        return 5

    def one():
        return (yield "tool", tool)

    assert asyncio.run(drive_async(one())) == 5


@pytest.mark.parametrize("carry", [drive, lambda each: asyncio.run(drive_async(each))])
def test_what_the_steps_do_not_catch_comes_out(carry):
    def one():
        yield "here", fails

    with pytest.raises(LookupError):
        carry(one())


def test_many_long_waits_hold_up_nothing():
    async def main():
        go = threading.Event()
        waits = [asyncio.create_task(in_thread(lambda: go.wait(PATIENCE))) for _ in range(40)]
        await asyncio.sleep(0)
        assert await in_thread(lambda: "still quick") == "still quick"
        go.set()
        return await asyncio.gather(*waits)

    assert asyncio.run(main()) == [True] * 40


def test_a_wait_that_is_given_up_troubles_nobody():
    go = threading.Event()

    async def main():
        task = asyncio.create_task(in_thread(lambda: go.wait(PATIENCE)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    go.set()
    until(lambda: all(each.name != "checkrein-gate" for each in threading.enumerate()))
