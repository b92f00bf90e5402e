"""Scripts are kept apart: nothing of one is there for the next, nothing happens before an answer."""

import asyncio

import pytest

from checkrein.errors import InputError
from checkrein.execute.python import PythonEngine
from checkrein.execute.python_state import unpack
from checkrein.execute.sandbox import Answer, Ended, Failed, Limits, Paused, Tool
from patience import PATIENCE, soon

TOOLS = [Tool("fs__read"), Tool("fs__send")]
STUBS = (
    "from typing import Any\n"
    "async def fs__read(*, path: str) -> Any: ...\n"
    "async def fs__send(*, text: Any) -> Any: ...\n"
)
LEAVES = {
    "a name": ("secret = 'left behind'", "secret"),
    "a module": ("import math\nmath", "math"),
    "a function": ("def helper():\n    return 'left behind'\nhelper()", "helper()"),
    "another print": ("print = str\nprint(1)", "print('mine')"),
    "another len": ("len = max\nlen([1, 5])", "len([7, 8])"),
    "another tool": (
        "async def fs__read(**_: str) -> str:\n    return 'left behind'\n1",
        "await fs__read(path='x')",
    ),
    "another module": ("json = 'left behind'\n1", "json.dumps([1])"),
    "a failure": ("secret = 'left behind'\n1 / 0", "secret"),
}


def with_engine(use, **more):
    async def go():
        engine = PythonEngine(**more)
        try:
            return await asyncio.wait_for(use(engine), PATIENCE)
        finally:
            await engine.close()

    return asyncio.run(go())


async def begun(engine, source, stubs=""):
    session = await engine.open(TOOLS, Limits(), stubs=stubs)
    return session, await session.start(source)


@pytest.mark.invariant("a worker has another script only when it says that nothing of the last is left")
@pytest.mark.parametrize("stubs", ["", STUBS], ids=["as it comes", "with a spare"])
@pytest.mark.parametrize("left", LEAVES)
def test_nothing_of_a_script_is_there_for_the_next(left, stubs):
    leaves, looks = LEAVES[left]

    async def use(engine):
        _, clean = await begun(engine, looks, stubs)
        for _ in range(3):
            session, step = await begun(engine, leaves, stubs)
            assert isinstance(step, Ended | Failed | Paused)
            await session.close()
            await soon(lambda: not stubs or engine.spares._ready is not None)
            session, found = await begun(engine, looks + "  # again", stubs)
            await session.close()
            assert type(found) is type(clean)
            assert "left behind" not in repr(found)
            if isinstance(found, Paused):
                assert [each.name for each in found.wanted] == ["fs__read"]
            else:
                assert getattr(found, "value", None) == getattr(clean, "value", None)
                assert found.output == clean.output

    with_engine(use, workers=1)


def test_nothing_behind_a_call_happens_before_its_answer():
    source = "print('before')\nx = await fs__read(path='a')\nprint('after', x)\nawait fs__send(text=x)"

    async def use(engine):
        session, step = await begun(engine, source)
        assert [each.name for each in step.wanted] == ["fs__read"]
        dumped = await session.dump()
        assert unpack(dumped).output == "before\n"
        session = await engine.load(dumped, TOOLS, Limits())
        step = await session.resume({step.wanted[0].id: Answer(value="v")})
        assert [(each.name, each.arguments) for each in step.wanted] == [("fs__send", {"text": "v"})]
        assert step.output == "before\nafter v\n"

    with_engine(use)


def test_a_call_that_was_refused_is_not_followed_by_what_needed_it():
    source = "x = await fs__read(path='a')\nawait fs__send(text=x)"

    async def use(engine):
        session, step = await begun(engine, source)
        return await session.resume({step.wanted[0].id: Answer(denied="denied")})

    step = with_engine(use)
    assert isinstance(step, Failed) and "fs__read" in step.message


@pytest.mark.parametrize(
    "source",
    [
        "await fs__send(text=await fs__read(path='a'))",
        "import asyncio\nfirst, second = await asyncio.gather(fs__read(path='a'), fs__read(path='b'))",
        "x = fs__read(path='a')\ny = fs__read(path='b')\nawait y\nawait x",
        "[await fs__read(path=each) for each in ('a', 'b')]",
    ],
)
def test_every_call_is_handed_over_to_be_judged_before_anything_comes_of_it(source):
    """None is lost and none is made twice, whatever turns are taken ahead."""

    async def use(engine):
        session, step = await begun(engine, source)
        made = []
        while isinstance(step, Paused):
            await asyncio.sleep(0)
            assert step.wanted
            made += [(each.name, each.arguments) for each in step.wanted]
            step = await session.resume({each.id: Answer(value="v") for each in step.wanted})
        assert isinstance(step, Ended)
        return made

    made = with_engine(use)
    assert len(made) == 2 and len(set(map(repr, made))) == 2


def test_a_script_that_is_closed_on_its_way_to_an_await_makes_no_other_call():
    async def use(engine):
        session, step = await begun(engine, "await fs__read(path='a')\nawait fs__send(text='b')")
        await session.close()
        assert [each.name for each in step.wanted] == ["fs__read"]
        with pytest.raises(InputError):
            await session.resume({step.wanted[0].id: Answer(value="v")})

    with_engine(use)
