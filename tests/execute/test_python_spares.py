"""A worker that is ready, and a check that passed before, save time and nothing else."""

import asyncio
import os
import signal

import pytest

from checkrein.execute.python import PythonEngine
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_spares import WARM_UP, Passed, Spares, Wanted
from checkrein.execute.sandbox import Answer, Ended, Failed, Limits, Paused, Tool
from patience import PATIENCE, soon

TOOLS = [Tool("fs__read")]
STUBS = "from typing import Any\nasync def fs__read(*, path: str) -> Any: ...\n"
OTHERS = "from typing import Any\nasync def fs__read(*, path: int) -> Any: ...\n"


def with_engine(use):
    async def go():
        engine = PythonEngine()
        try:
            return await asyncio.wait_for(use(engine), PATIENCE)
        finally:
            await engine.close()

    return asyncio.run(go())


async def begun(engine, source, stubs=STUBS):
    session = await engine.open(TOOLS, Limits(), stubs=stubs)
    return session, await session.start(source)


async def ready(engine):
    """Until the spare is there."""
    await soon(lambda: engine.spares._ready is not None)
    return engine.spares._ready[1]


def test_the_next_script_gets_the_spare_and_the_one_after_it_another():
    async def use(engine):
        used = []
        for source in ("1", "2", "3"):
            _, step = await begun(engine, source)
            assert isinstance(step, Ended) and str(step.value) == source
            worker = await ready(engine)
            # A process may come back, after it forgot all of its script.
            used.append((worker.pid, worker.scripts))
        return used

    assert len(set(with_engine(use))) == 3


@pytest.mark.parametrize(
    "source", ["k", "v", "n", "_", "rows = [n]", "x = 1\ny = x + 'a'", "fs__read(pth='a')"]
)
def test_what_is_wrong_is_found_in_the_same_words_with_a_spare(source):
    """Nothing of the warm-up is there for a script to see."""

    async def use(engine):
        _, first = await begun(engine, source)
        await begun(engine, "1")
        await ready(engine)
        _, second = await begun(engine, source)
        return first, second

    first, second = with_engine(use)
    assert isinstance(first, Failed) and first.kind == "types" and first.line
    assert second == first


def test_calls_and_lines_are_the_same_with_a_spare():
    source = "a = 1\nb = await fs__read(path='x')\nb"

    async def use(engine):
        steps = []
        for text in (source, "1", source + "  # again"):
            session, step = await begun(engine, text)
            if isinstance(step, Paused):
                steps.append(step)
                steps.append(await session.resume({step.wanted[0].id: Answer(value="y")}))
            await ready(engine)
        return steps

    first, ended, second, again = with_engine(use)
    assert [(each.name, each.arguments, each.line) for each in first.wanted] == [
        ("fs__read", {"path": "x"}, 2)
    ]
    assert [each.line for each in second.wanted] == [2] and second.wanted[0].arguments == {"path": "x"}
    assert (ended.value, again.value) == ("y", "y")


def test_a_spare_for_other_tools_is_not_used():
    """INVARIANT: a script is checked against the tools of its own moment."""

    async def use(engine):
        await begun(engine, "1")
        await ready(engine)
        _, step = await begun(engine, "await fs__read(path='x')", OTHERS)
        return step

    step = with_engine(use)
    assert isinstance(step, Failed) and step.kind == "types"


@pytest.mark.invariant(
    "a check is skipped only for the very text, against the very stubs, that it passed with"
)
def test_a_check_is_skipped_only_for_the_same_text_and_tools():
    async def use(engine):
        found, hire = [], engine.hire

        def hired(wanted, *, checked):
            found.append(checked)
            return hire(wanted, checked=checked)

        engine.hire, engine.spares._closed = hired, True
        source = "await fs__read(path='x')"
        for text, stubs in ((source, STUBS), (source, STUBS), (source, OTHERS), (source + " ", STUBS)):
            session, step = await begun(engine, text, stubs)
            found.append(type(step).__name__)
            await session.close()
        return found

    assert with_engine(use) == [True, "Paused", False, "Paused", True, "Failed", True, "Paused"]


def test_what_failed_its_check_is_checked_again():
    async def use(engine):
        return [(await begun(engine, "x = 1 + 'a'"))[1] for _ in range(3)]

    assert {step.kind for step in with_engine(use)} == {"types"}


def test_texts_are_not_taken_for_one_another():
    assert len({Passed.key(*pair) for pair in (("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""))}) == 4


def test_a_worker_that_cannot_be_had_is_the_next_scripts_trouble():
    async def go():
        tried = asyncio.Event()

        async def hire(_wanted):
            tried.set()
            raise OSError("no more processes")

        spares, wanted = Spares(hire, None), Wanted(Names(TOOLS, STUBS), Limits())
        spares.prepare(wanted)
        await asyncio.wait_for(tried.wait(), PATIENCE)
        await asyncio.sleep(0)
        assert spares.take(wanted) is None
        await spares.close()

    asyncio.run(go())


def test_a_spare_that_died_meanwhile_is_nobodys_trouble():
    async def use(engine):
        await begun(engine, "1")
        spare = await ready(engine)
        os.kill(spare.pid, signal.SIGKILL)
        await soon(lambda: spare.lost)
        _, step = await begun(engine, "2")
        return step, await ready(engine) is spare

    assert with_engine(use) == (Ended(2, ""), False)


def test_the_warm_up_is_right_in_itself():
    async def use(engine):
        _, step = await begun(engine, "\n".join(WARM_UP.strip().splitlines()))
        return step

    assert with_engine(use) == Ended(None, "")
