"""The worker of one script: within its time, given back whatever happens, and never lent out twice."""

import asyncio
import time

import pytest

from checkrein.execute import python_interpreter
from checkrein.execute.python import PythonEngine
from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import Fault
from checkrein.execute.python_interpreter import Interpreter, StoppedError
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_spares import Wanted
from checkrein.execute.python_words import Completed, System, answer, feed
from checkrein.execute.python_worker import LostError
from checkrein.execute.sandbox import Limits
from own_time import run_in_own_time
from patience import PATIENCE, soon
from scripts import TOOLS, freeze, with_engine, workers


def within(seconds):
    return Wanted(Names(TOOLS, ""), Limits(seconds=seconds))


# What is not about time has much of it.
WANTED = within(PATIENCE)


def with_interpreter(use, wanted=WANTED):
    async def go(engine):
        interpreter = Interpreter(engine, wanted, console())
        try:
            return await use(interpreter, engine)
        finally:
            await interpreter.release()

    return with_engine(go, workers=1)


def console():
    return Console(1_000, lambda: None)


async def fed(interpreter, text):
    await interpreter.step(feed(text, checked=False))


def test_a_script_is_put_away_with_its_worker_given_back_and_taken_up_where_it_stood():
    async def use(interpreter, engine):
        await interpreter.begin(checked=False)
        await fed(interpreter, "await asyncio.sleep(5)\n7")
        assert interpreter.at == System(0, "asyncio.sleep", 5.0)
        await interpreter.put_away()
        assert interpreter.worker is None and interpreter.shelf
        # The only worker there is serves another meanwhile.
        other = Interpreter(engine, WANTED, console())
        await other.begin(checked=False)
        await fed(other, "1")
        assert other.at == Completed(1)
        await other.release()
        await interpreter.take_up(checked=False)
        assert not interpreter.shelf
        await interpreter.step(answer(0, {"return_value": None}))
        return interpreter.at

    assert with_interpreter(use) == Completed(7)


def test_what_was_not_put_away_is_not_taken_up():
    async def use(interpreter, _engine):
        with pytest.raises(StoppedError, match="worker ended"):
            await interpreter.take_up(checked=False)
        return interpreter.worker

    assert with_interpreter(use) is None


def test_time_is_counted_over_turns_naps_and_our_own_work():
    async def use(interpreter, _engine):
        await interpreter.begin(checked=False)
        before = interpreter.spent
        assert before > 0
        await interpreter.nap(0.05)
        with interpreter.spending():
            time.sleep(0.05)
        assert interpreter.spent - before >= 0.1
        with pytest.raises(StoppedError, match="longer than 60 seconds"):
            await interpreter.nap(PATIENCE)
        interpreter.spent = PATIENCE
        await interpreter.release()
        with pytest.raises(StoppedError, match="longer than 60 seconds"):
            await interpreter.begin(checked=False)

    with_interpreter(use)


def test_a_turn_without_end_is_ended():
    async def use(interpreter, _engine):
        with pytest.raises(StoppedError, match=r"longer than 0\.3 seconds"):
            await interpreter.begin(checked=False)
            await fed(interpreter, "while True: pass")

    with_interpreter(use, within(0.3))


def test_a_turn_that_is_stopped_says_why():
    async def use(interpreter, _engine):
        await interpreter.begin(checked=False)
        turn = asyncio.ensure_future(fed(interpreter, "while True: pass"))
        await soon(lambda: interpreter.worker.busy)
        interpreter.stop(Fault("output", "too much"))
        with pytest.raises(StoppedError, match="too much"):
            await turn

    with_interpreter(use)


def test_who_was_ended_while_it_waited_for_a_worker_keeps_none():
    async def use(interpreter, engine):
        await interpreter.begin(checked=False)
        late = Interpreter(engine, WANTED, console())
        waiting = asyncio.ensure_future(late.begin(checked=False))
        await soon(lambda: engine.seats.crowded)
        late.over = True
        await interpreter.release()
        with pytest.raises(StoppedError, match="was ended"):
            await waiting
        assert late.worker is None
        # Its seat is there for the next.
        await asyncio.wait_for(interpreter.begin(checked=False), PATIENCE)

    with_interpreter(use)


class Hires:
    """An engine whose workers are those a test gives it."""

    def __init__(self, engine, hire):
        self._engine, self.hire = engine, hire

    def __getattr__(self, name):
        return getattr(self._engine, name)


def test_a_turn_that_nobody_else_ends_is_ended_when_its_time_is_over():
    async def use(engine):
        hired = []

        async def hire(wanted, *, checked):
            """A worker that heeds no limit."""
            hired.append(await engine.hire(wanted, checked=checked))
            freeze(hired[0].pid)
            return hired[0]

        interpreter = Interpreter(Hires(engine, hire), within(0.2), console())
        with pytest.raises(StoppedError, match=r"0\.2 seconds"):
            await asyncio.wait_for(interpreter.begin(checked=False), PATIENCE)
        assert hired[0].lost
        await interpreter.release()

    with_engine(use, workers=1)
    assert workers() == {}


class Silent:
    """A worker that answers its first question only."""

    def __init__(self):
        self.asked, self.ended, self.hear = 0, asyncio.Event(), None

    async def ask(self, _request):
        self.asked += 1
        if self.asked > 1:
            await self.ended.wait()
            raise LostError
        return Completed(None)

    def end(self):
        self.ended.set()


def test_a_turn_that_began_late_has_all_of_its_own_time():
    """What was to end the first turn comes while the second is under way, and leaves it alone."""

    async def timed():
        silent, engine = Silent(), PythonEngine(workers=1)

        async def hire(_wanted, *, checked):
            return silent

        clock = asyncio.get_running_loop().time
        interpreter = Interpreter(Hires(engine, hire), within(20.0), console(), clock)
        await interpreter.begin(checked=False)
        await asyncio.sleep(15.0)
        began = clock()
        with pytest.raises(StoppedError, match="20 seconds"):
            await fed(interpreter, "1")
        return clock() - began

    # Its own seconds, and some grace.
    assert 20 <= run_in_own_time(timed) < 21


def test_a_turn_that_is_given_up_ends_with_its_worker():
    async def use(interpreter, engine):
        await interpreter.begin(checked=False)
        turn = asyncio.ensure_future(fed(interpreter, "while True: pass"))
        await soon(lambda: interpreter.worker.busy)
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        # Nobody waits for what is left of its time.
        await asyncio.wait_for(interpreter.release(), PATIENCE)
        other = Interpreter(engine, WANTED, console())
        await asyncio.wait_for(other.begin(checked=False), PATIENCE)
        await other.release()

    with_interpreter(use)


def test_a_worker_that_hangs_while_it_is_put_away_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(python_interpreter, "_PUT_AWAY_SECONDS", 0.2)

    async def use(interpreter, _engine):
        await interpreter.begin(checked=False)
        await fed(interpreter, "await asyncio.sleep(5)")
        freeze(interpreter.worker.pid)
        await interpreter.put_away()
        return interpreter.worker, interpreter.shelf

    assert with_interpreter(use) == (None, b"")
    assert workers() == {}


@pytest.mark.invariant("whatever a worker makes of that, its script goes no further")
def test_a_worker_that_goes_on_after_it_was_told_to_end_the_script_is_not_followed():
    async def use(interpreter, _engine):
        await interpreter.begin(checked=False)
        interpreter._turns_left = 1

        async def deaf(_request):
            return Completed(1)

        interpreter.worker.ask = deaf
        with pytest.raises(StoppedError):
            await fed(interpreter, "1")

    with_interpreter(use)
