"""Work that is finished once it is begun."""

import asyncio

import pytest

from checkrein.doors.chat.whole import whole


def test_what_came_of_it_is_handed_on():
    async def work():
        return 7

    async def breaks():
        raise LookupError("no")

    assert asyncio.run(whole(work())) == 7
    with pytest.raises(LookupError):
        asyncio.run(whole(breaks()))


def test_who_is_stopped_hears_of_it_after_the_work_is_done():
    done = []

    async def main():
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def work():
            begun.set()
            await go_on.wait()
            done.append("work")

        task = asyncio.ensure_future(whole(work()))
        await begun.wait()
        task.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        done.append("stopped")

    asyncio.run(main())
    assert done == ["work", "stopped"]
