"""The engine under load and under attack: suspended, crowded, crashed, closed, damaged."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap

import msgspec
import pytest

from checkrein.errors import InputError
from checkrein.execute.python import PythonEngine
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_spares import Wanted
from checkrein.execute.python_state import pack, unpack
from checkrein.execute.python_words import Waiting
from checkrein.execute.sandbox import Answer, DamagedError, Ended, Failed, Limits, Paused
from own_time import Ahead
from patience import PATIENCE, soon
from scripts import LONG, TOOLS, follow, run_in, state, with_engine, workers

GATHER = (
    "print('before')\nx = await asyncio.gather(fs__delete(path='/one'), fs__read(n=2))\nprint('after')\nx"
)
PLAIN = "x = fs__delete(path='/one')\nx"


async def suspended(engine, source=GATHER, limits=LONG):
    session = await engine.open(TOOLS, limits)
    step = await session.start(source)
    assert isinstance(step, Paused)
    return step, await session.dump()


@pytest.mark.parametrize("source", [GATHER, PLAIN])
def test_a_script_goes_on_from_bytes(source):
    async def use(engine):
        step, dumped = await suspended(engine, source)
        session = await engine.load(dumped, TOOLS, LONG)
        return await follow(session, step)

    ended = with_engine(use)
    assert ended == (
        Ended([{"path": "/one"}, {"n": 2}], "before\nafter\n")
        if source == GATHER
        else Ended({"path": "/one"})
    )


def test_a_script_goes_on_in_another_process(tmp_path):
    step, dumped = with_engine(suspended)
    (tmp_path / "run").write_bytes(dumped)
    program = """
        import asyncio, sys
        from pathlib import Path
        from checkrein.execute.python import PythonEngine
        from checkrein.execute.sandbox import Answer, Limits, Tool
        async def main():
            engine = PythonEngine()
            tools = [Tool("fs__read"), Tool("fs__delete")]
            session = await engine.load(Path(sys.argv[1]).read_bytes(), tools, Limits())
            print(await session.resume({int(number): Answer(value=number) for number in sys.argv[2:]}))
            await engine.close()
        asyncio.run(main())
    """
    numbers = [str(wanted.id) for wanted in step.wanted]
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "run"), *numbers]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout.strip()
    assert said == repr(Ended(numbers, "before\nafter\n"))


def test_a_hundred_suspended_scripts_hold_no_process():
    async def use(engine):
        await run_in(engine, "1")
        many = [await suspended(engine) for _ in range(100)]
        held = workers()
        sessions = [await engine.load(dumped, TOOLS, LONG) for _, dumped in many]
        ended = [await follow(session, step) for session, (step, _) in zip(sessions, many, strict=True)]
        return held, ended

    held, ended = with_engine(use)
    assert len(held) <= 1
    assert all(step.value == [{"path": "/one"}, {"n": 2}] for step in ended)


def test_scripts_that_wait_do_not_keep_others_from_running():
    async def use(engine):
        waiting = [await engine.open(TOOLS, LONG) for _ in range(6)]
        steps = [
            await session.start(f"x = await fs__read(n={n})\n[x, {n}]") for n, session in enumerate(waiting)
        ]
        assert len(workers()) <= 4
        assert await asyncio.wait_for(run_in(engine, "1 + 1"), PATIENCE) == Ended(2)
        return [await follow(session, step) for session, step in zip(waiting, steps, strict=True)]

    assert [step.value for step in with_engine(use, workers=2)] == [[{"n": n}, n] for n in range(6)]


def test_many_scripts_at_once():
    async def use(engine):
        sources = [f"a = await fs__read(n={n})\nb = await fs__read(n=a['n'] + 1)\nb['n']" for n in range(64)]
        return await asyncio.gather(*(run_in(engine, source, limits=Limits()) for source in sources))

    assert [step.value for step in with_engine(use)] == list(range(1, 65))


def test_an_endless_script_ends_in_time_and_keeps_no_worker_busy():
    async def use(engine):
        step = await run_in(engine, "while True:\n    pass", limits=Limits(seconds=0.3))
        await soon(lambda: not any(state(pid) == "R" for pid in workers()), failing="it still computes")
        return step

    assert with_engine(use) == Failed("time", "The script computed for longer than 0.3 seconds.")


def test_others_run_while_a_script_computes():
    async def use(engine):
        endless = asyncio.ensure_future(run_in(engine, "while True:\n    pass"))
        await soon(lambda: any(_cpu(pid) > 5 for pid in workers()))
        for n in range(5):
            other = run_in(engine, f"(await fs__read(n={n}))['n']")
            assert await asyncio.wait_for(other, PATIENCE) == Ended(n)
        assert not endless.done()
        endless.cancel()
        await asyncio.wait([endless])

    with_engine(use)


def _cpu(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def test_waiting_costs_nothing_and_suspending_gives_no_fresh_time():
    burn = "import time\nuntil = time.time() + 0.1\nwhile time.time() < until:\n    pass\n"

    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        step = await session.start(burn + "await fs__read(n=1)")
        assert isinstance(step, Paused)
        spent = session.interpreter.spent
        # Another script has all the time it wants meanwhile.
        await run_in(engine, burn)
        assert session.interpreter.spent == spent
        dumped = await session.dump()
        assert unpack(dumped).spent == spent
        with pytest.raises(DamagedError, match=r"longer than 0\.05 seconds"):
            await engine.load(dumped, TOOLS, Limits(seconds=0.05))
        session = await engine.load(dumped, TOOLS, LONG)
        assert session.interpreter.spent > spent > 0.1
        return await follow(session, step)

    assert with_engine(use) == Ended({"n": 1})


def test_time_spent_before_counts_even_where_the_interpreter_forgot_it():
    """The interpreter itself would let the script compute for as long as its whole limit."""
    source = (
        "import time\nawait fs__read(n=1)\nuntil = time.time() + 1.5\nwhile time.time() < until:\n    pass"
    )

    async def use(engine):
        step, dumped = await suspended(engine, source)
        spent = pack(msgspec.structs.replace(unpack(dumped), spent=LONG.seconds - 0.3))
        try:
            session = await engine.load(spent, TOOLS, LONG)
        except DamagedError as error:
            # Taking it up took all that was left.
            return str(error)
        return (await follow(session, step)).message

    assert f"The script computed for longer than {LONG.seconds:g} seconds." in with_engine(use)


def test_a_crashed_worker_ends_its_script_only():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        await session.start("await fs__read(n=1)")
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        crashed = await session.resume({0: Answer()})
        fine = await run_in(engine, "1 + 1")
        running = asyncio.ensure_future(run_in(engine, "while True:\n    pass"))
        await soon(lambda: any(_cpu(pid) > 5 for pid in workers()))
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        return crashed, fine, await running, await run_in(engine, "1 + 1")

    crashed, fine, running, after = with_engine(use)
    assert (crashed.kind, running.kind) == ("crash", "crash")
    assert fine == after == Ended(2)


def test_a_worker_that_ends_while_its_script_waits_cannot_be_put_away():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        await session.start("await fs__read(n=1)")
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(DamagedError):
            await session.dump()

    with_engine(use)


def test_closing_ends_what_runs():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        running = asyncio.ensure_future(session.start("while True:\n    pass"))
        await soon(lambda: any(_cpu(pid) > 5 for pid in workers()))
        await session.close()
        step = await running
        cancelled = asyncio.ensure_future(run_in(engine, "while True:\n    pass"))
        await soon(lambda: any(_cpu(pid) > 5 for pid in workers()))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert await run_in(engine, "2") == Ended(2)
        return step

    assert with_engine(use, workers=1) == Failed("crash", "The script was ended.")
    assert workers() == {}


def test_closing_while_others_are_in_line_or_asleep():
    async def use(engine):
        sleeper, second = await engine.open(TOOLS, LONG), await engine.open(TOOLS, LONG)
        asleep = asyncio.ensure_future(sleeper.start("await asyncio.sleep(50)"))
        await soon(lambda: isinstance(sleeper.interpreter.at, Waiting))
        in_line = asyncio.ensure_future(second.start("1"))
        await soon(lambda: engine.seats.crowded)
        await second.close()
        await sleeper.close()
        asyncio.get_running_loop().ahead += 50
        steps = await asyncio.gather(asleep, in_line)
        return [*steps, await run_in(engine, "3")]

    async def go():
        engine = PythonEngine(workers=1)
        try:
            return await use(engine)
        finally:
            await engine.close()

    with asyncio.Runner(loop_factory=Ahead) as runner:
        first, second, third = runner.run(go())
    assert first.kind == second.kind == "crash"
    assert third == Ended(3)


def test_damaged_bytes_are_refused_and_the_engine_lives():
    async def use(engine):
        _, dumped = await suspended(engine)
        _, other = await suspended(engine, PLAIN)
        choose = random.Random(7)
        for _ in range(200):
            raw = bytearray(dumped)
            raw[choose.randrange(len(raw))] ^= 1 << choose.randrange(8)
            for damaged in (bytes(raw), dumped[: choose.randrange(len(dumped))], dumped[:100] + other[100:]):
                with pytest.raises(DamagedError):
                    await engine.load(damaged, TOOLS, LONG)
        with pytest.raises(DamagedError):
            await engine.load(b"", TOOLS, LONG)
        assert await run_in(engine, "1") == Ended(1)

    with_engine(use)


@pytest.mark.invariant("a script goes on only where its calls are those we know of")
@pytest.mark.parametrize("source", [GATHER, PLAIN])
def test_an_altered_interpreter_state_never_makes_a_call_other_than_those_asked(source):
    async def use(engine):
        step, dumped = await suspended(engine, source)
        state = unpack(dumped)
        choose, outcomes = random.Random(11), []
        for _ in range(60):
            raw = bytearray(state.snapshot)
            raw[choose.randrange(len(raw))] ^= 1 << choose.randrange(8)
            outcomes.append(await _try(engine, msgspec.structs.replace(state, snapshot=bytes(raw)), step))
        renamed = state.snapshot.replace(b"/one", b"/two")
        outcomes.append(await _try(engine, msgspec.structs.replace(state, snapshot=renamed), step))
        assert await run_in(engine, "1") == Ended(1)
        return outcomes

    outcomes = with_engine(use)
    assert "damaged" in outcomes
    if source == PLAIN:
        # The last stands at another call than the one that was asked.
        assert outcomes[-1] == "damaged"
    assert set(outcomes) <= {"damaged", "ended", "failed", "paused"}


async def _try(engine, state, step):
    """INVARIANT: what is executed are the calls that were asked and stored, never what altered bytes say."""
    limits = Limits(seconds=0.5)
    try:
        session = await engine.load(pack(state), TOOLS, limits)
    except DamagedError:
        return "damaged"
    assert {wanted.id for wanted in state.waiting} == {wanted.id for wanted in step.wanted}
    after = await session.resume({wanted.id: Answer(value=wanted.arguments) for wanted in step.wanted})
    await session.close()
    return type(after).__name__.lower()


def test_the_loop_is_not_held_up():
    """It turns while a script computes; held up, it would come back only at the end of the script's time."""

    async def use(engine):
        running = asyncio.ensure_future(run_in(engine, "while True:\n    pass"))
        await soon(lambda: any(_cpu(pid) > 5 for pid in workers()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])

    with_engine(use)


def test_closed_engines_start_again_and_dumped_sessions_are_over():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        await session.start("await fs__read(n=1)")
        await session.dump()
        with pytest.raises(InputError):
            await session.resume({0: Answer()})
        await engine.close()
        assert workers() == {}
        return await run_in(engine, "1")

    assert with_engine(use) == Ended(1)


async def _turns(count):
    """Let the loop turn so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_worker_that_comes_when_nobody_waits_any_more_is_gone():
    async def use(engine):
        for moment in range(12):
            hiring = asyncio.ensure_future(engine.hire(Wanted(Names(TOOLS, ""), LONG), checked=False))
            await _turns(2**moment)
            hiring.cancel()
            await asyncio.wait([hiring])
            if not hiring.cancelled():
                await engine.dismiss(hiring.result())
        assert await asyncio.wait_for(run_in(engine, "1 + 1"), PATIENCE) == Ended(2)
        await soon(lambda: len(workers()) <= len(engine._idle))
        return len(workers()) - len(engine._idle)

    assert with_engine(use, workers=1) == 0
    assert workers() == {}


@pytest.mark.invariant("one that comes for somebody who has given up is ended with the others")
def test_a_worker_that_comes_while_everything_ends_ends_too():
    async def use(engine):
        for moment in range(8):
            starting = asyncio.ensure_future(run_in(engine, "await fs__read(n=1)"))
            await _turns(4**moment)
            await engine.close()
            assert not engine._idle and not engine._coming
            await asyncio.wait([starting], timeout=PATIENCE)
            assert starting.done()
        return workers()

    assert with_engine(use) == {}
