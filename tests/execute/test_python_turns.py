"""Turns of interpreters: beside the loop, given back to who waits, and nothing left behind."""

import asyncio
import threading
import time

import pytest

from checkrein.execute.python_turns import Turns


def with_turns(use):
    async def go():
        turns = Turns()
        try:
            return await use(turns)
        finally:
            turns.close()

    return asyncio.run(go())


def ours():
    return {each for each in threading.enumerate() if each.name == "script turn"}


def left_of(before):
    """Those that are still there after a while; another test's may end meanwhile."""
    until = time.monotonic() + 10
    while ours() - before and time.monotonic() < until:
        time.sleep(0.01)
    return ours() - before


def wrong():
    raise ValueError("no")


def test_a_turn_is_taken_beside_the_loop():
    async def use(turns):
        held = threading.Event()
        turn = turns.take(lambda: held.wait(10) and threading.get_ident())
        await asyncio.sleep(0.01)
        assert not turn.done()
        held.set()
        return await turn

    assert with_turns(use) != threading.get_ident()


def test_what_goes_wrong_is_raised_where_it_is_waited_for_and_the_next_turn_is_as_good():
    async def use(turns):
        with pytest.raises(ValueError, match="no"):
            await turns.take(wrong)
        return await turns.take(lambda: 3)

    assert with_turns(use) == 3


def test_one_thread_serves_all_turns_that_come_one_after_the_other():
    async def use(turns):
        return {await turns.take(threading.get_ident) for _ in range(20)}

    assert len(with_turns(use)) == 1


def test_turns_at_once_wait_for_none_of_each_other():
    async def use(turns):
        met = threading.Barrier(8)
        await asyncio.gather(*(turns.take(lambda: met.wait(10)) for _ in range(8)))

    with_turns(use)


@pytest.mark.parametrize("work", [lambda: 3, wrong], ids=["came", "failed"])
def test_what_comes_too_late_is_heard_in_the_place_of_who_gave_up(work):
    async def use(turns):
        held, late = threading.Event(), []
        turn = turns.take(lambda: held.wait(10) and work(), late.append)
        turn.cancel()
        held.set()
        # The same thread comes back for more.
        while not turns._idle:
            await asyncio.sleep(0.001)
        assert await turns.take(lambda: 4) == 4
        return late

    assert with_turns(use) == ([] if work is wrong else [3])


def test_no_thread_stays():
    before = ours()

    async def use(turns):
        held = threading.Event()
        busy = turns.take(lambda: held.wait(10))
        await turns.take(lambda: 1)
        assert len(ours() - before) == 2
        turns.close()
        held.set()
        await busy

    with_turns(use)
    assert not left_of(before)


def test_a_turn_that_outlives_its_loop_is_over_with_it():
    before, held = ours(), threading.Event()

    async def use(turns):
        turns.take(lambda: held.wait(10))

    with_turns(use)
    held.set()
    assert not left_of(before)


def test_whoever_ends_everything_waits_for_turns_that_nobody_waits_for():
    async def use(turns):
        held, late = threading.Event(), []
        turn = turns.take(lambda: held.wait(10) and 3, late.append)
        turn.cancel()
        resting = asyncio.ensure_future(turns.rest(30))
        await asyncio.sleep(0.05)
        assert not resting.done() and late == []
        held.set()
        await resting
        return late

    assert with_turns(use) == [3]


def test_a_turn_without_end_is_not_waited_for_without_end():
    held = threading.Event()

    async def use(turns):
        turns.take(lambda: held.wait(30))
        await turns.rest(0.05)

    with_turns(use)
    held.set()
