"""JavaScript scripts that wait give their workers to those that do not, and go on where they were."""

import asyncio

import pytest

from checkrein.errors import InputError
from checkrein.execute import js_seat
from checkrein.execute.sandbox import Ended, Failed, Limits, Paused
from javascript_ground import LONG, TOOLS, echo, follow, run_in, running, with_engine
from patience import PATIENCE, soon

SLEEPS = "const mine = {n: %d}; await new Promise(r => setTimeout(r, %d)); return mine.n"
CALLS = "const mine = []; mine.push((await codemode.fs__read({n: %d})).n); mine.push(mine.length); mine"


async def begun(engine, source):
    session = await engine.open(TOOLS, LONG)
    return session, await session.start(source)


def test_scripts_that_sleep_hold_up_nobody():
    async def use(engine):
        asleep = [asyncio.ensure_future(run_in(engine, SLEEPS % (n, 250_000))) for n in range(2)]
        await soon(lambda: len(running(engine.nursery.pid)) >= 2)
        assert await asyncio.wait_for(run_in(engine, "1 + 1"), PATIENCE) == Ended(2)
        assert not any(each.done() for each in asleep)
        for each in asleep:
            each.cancel()
        await asyncio.wait(asleep)
        return engine.kept

    assert with_engine(use, workers=2) == 0


def test_scripts_that_gave_way_while_they_slept_go_on_where_they_were():
    async def use(engine):
        asleep = [asyncio.ensure_future(run_in(engine, SLEEPS % (n, 600))) for n in range(2)]
        await soon(lambda: len(running(engine.nursery.pid)) >= 2)
        assert await run_in(engine, "1 + 1") == Ended(2)
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


class Full:
    """Room for nothing more; counts who asked."""

    asked = 0

    def __lt__(self, _kept):
        self.asked += 1
        return True


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    """Then the next script waits until somebody is through."""
    full = Full()
    monkeypatch.setattr(js_seat, "MOST_KEPT", full)

    async def use(engine):
        ends = []

        async def noted(work):
            ends.append(await work)

        session, step = await begun(engine, CALLS % 1)
        late = asyncio.ensure_future(noted(run_in(engine, "1 + 1")))
        await soon(lambda: full.asked)
        await noted(follow(session, step))
        await late
        return ends

    assert with_engine(use, workers=1) == [Ended([1, 1]), Ended(2)]


def test_a_script_that_computes_makes_no_room():
    async def use(engine):
        looping = asyncio.ensure_future(run_in(engine, "for (;;);", limits=Limits(seconds=0.3)))
        # It has the only seat.
        await asyncio.sleep(0)
        found = await run_in(engine, "1 + 1", echo)
        return found, (await looping)

    found, looped = with_engine(use, workers=1)
    assert found == Ended(2) and isinstance(looped, Failed) and looped.kind == "time"
