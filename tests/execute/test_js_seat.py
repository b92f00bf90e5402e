"""JavaScript scripts that wait give their workers to those that do not, and go on where they were."""

import asyncio

import pytest

from checkrein.errors import InputError
from checkrein.execute import js_seat
from checkrein.execute.sandbox import Ended, Failed, Limits, Paused
from javascript_ground import LONG, TOOLS, echo, follow, run_in, running, with_engine

SLEEPS = "const mine = {n: %d}; await new Promise(r => setTimeout(r, %d)); return mine.n"
CALLS = "const mine = []; mine.push((await codemode.fs__read({n: %d})).n); mine.push(mine.length); mine"


async def begun(engine, source):
    session = await engine.open(TOOLS, LONG)
    return session, await session.start(source)


def test_scripts_that_sleep_hold_up_nobody():
    async def use(engine):
        asleep = [asyncio.ensure_future(run_in(engine, SLEEPS % (n, 4000))) for n in range(2)]
        while engine.seats.crowded or len(running(engine.nursery.pid)) < 2:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(3):
            assert await run_in(engine, "1 + 1") == Ended(2)
        assert not any(each.done() for each in asleep)
        return await asyncio.gather(*asleep), engine.kept

    assert with_engine(use, workers=2) == ([Ended(0), Ended(1)], 0)


def test_scripts_whose_calls_take_long_hold_up_nobody():
    async def use(engine):
        waiting = [await begun(engine, CALLS % n) for n in range(6)]
        assert all(isinstance(step, Paused) for _, step in waiting)
        assert sum(session._worker is not None for session, _ in waiting) <= 2 and engine.kept > 0
        found = [await follow(session, step) for session, step in waiting]
        return found, engine.kept

    assert with_engine(use, workers=2) == ([Ended([n, 1]) for n in range(6)], 0)


def test_a_script_that_gave_way_can_be_put_away_and_taken_up():
    async def use(engine):
        session, step = await begun(engine, CALLS % 7)
        other, _ = await begun(engine, CALLS % 8)
        assert session._worker is None
        dumped = await session.dump()
        with pytest.raises(InputError):
            await session.resume({})
        await other.close()
        return await follow(await engine.load(dumped, TOOLS, LONG), step), engine.kept

    assert with_engine(use, workers=1) == (Ended([7, 1]), 0)


def test_one_that_is_ended_after_it_gave_way_leaves_nothing():
    async def use(engine):
        session, _ = await begun(engine, CALLS % 1)
        other, step = await begun(engine, CALLS % 2)
        assert engine.kept > 0
        await session.close()
        await session.close()
        return engine.kept, await follow(other, step)

    assert with_engine(use, workers=1) == (0, Ended([2, 1]))


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    """Then the next script waits until somebody is through."""
    monkeypatch.setattr(js_seat, "MOST_KEPT", -1)

    async def use(engine):
        session, step = await begun(engine, CALLS % 1)
        late = asyncio.ensure_future(run_in(engine, "1 + 1"))
        await asyncio.sleep(0.5)
        assert not late.done() and session._worker is not None
        return await follow(session, step), await late

    assert with_engine(use, workers=1) == (Ended([1, 1]), Ended(2))


def test_a_script_that_computes_makes_no_room():
    async def use(engine):
        looping = asyncio.ensure_future(run_in(engine, "for (;;);", limits=Limits(seconds=1.0)))
        await asyncio.sleep(0.3)
        found = await run_in(engine, "1 + 1", echo)
        return found, (await looping)

    found, looped = with_engine(use, workers=1)
    assert found == Ended(2) and isinstance(looped, Failed) and looped.kind == "time"
