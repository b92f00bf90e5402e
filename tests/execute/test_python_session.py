"""What a Python script sees, what leaves it, and how it ends."""

import os
import signal
import threading

import pytest

from checkrein.errors import InputError
from checkrein.execute import python_session
from checkrein.execute.python_words import Called, Waiting, answer
from checkrein.execute.sandbox import Answer, Ended, Failed, Limits, Paused, Tool
from scripts import LONG, SECOND, TOOLS, follow, run, run_in, with_engine

STUBS = "async def fs__read(*, path: str) -> dict: ...\nasync def fs__delete(*, path: str) -> None: ...\n"


@pytest.mark.parametrize(
    "source",
    [
        "await codemode.fs__read(path='a')",
        "await codemode.fs__read({'path': 'a'})",
        "await fs__read(path='a')",
        "await call_tool('fs__read', {'path': 'a'})",
        "return await codemode.call_tool('fs__read', {'path': 'a'})",
        "import codemode\nfrom codemode import fs__read as read\nawait read(path='a')",
        "f = fs__read\nx = await f(path='a')\nx",
        "fs__read(path='a')",
        "x = fs__read(path='a')\nx",
        "t = fs__read(path='a')\nawait t",
        "async def main():\n    return await fs__read(path='a')\nawait main()",
        "await eval('fs__read(path=\"a\")')",
        "if True:\n    return await fs__read(path='a')",
    ],
)
def test_every_form_is_the_same_call(source):
    seen = []
    assert run(source, seen=seen) == Ended({"path": "a"})
    assert [(wanted.name, wanted.arguments) for wanted in seen[0]] == [("fs__read", {"path": "a"})]
    assert len(seen) == len(seen[0]) == 1


@pytest.mark.parametrize(
    "source", ["1 + 1", "x = 2\nx", "return 2", "async def f():\n    return 2\nawait f()"]
)
def test_the_value_of_the_last_expression_or_of_return(source):
    assert run(source) == Ended(2)


def test_no_expression_at_the_end_is_no_value():
    assert run("x = 2") == Ended(None)


def test_gather_is_one_pause_with_every_call():
    seen = []
    several = "fs__read(path='a'), codemode.mail__send(to='b'), *[fs__read(n=i) for i in range(3)]"
    assert run(f"await asyncio.gather({several})", seen=seen).value == [
        {"path": "a"},
        {"to": "b"},
        {"n": 0},
        {"n": 1},
        {"n": 2},
    ]
    assert len(seen) == 1
    assert [wanted.name for wanted in seen[0]] == [
        "fs__read",
        "mail__send",
        "fs__read",
        "fs__read",
        "fs__read",
    ]
    assert len({wanted.id for wanted in seen[0]}) == 5


def test_calls_inside_gathered_functions_wait_together():
    seen = []
    source = "async def f(i):\n    a = await fs__read(n=i)\n    return (await fs__read(n=a['n'] + 10))['n']\n"
    assert run(source + "await asyncio.gather(f(1), f(2))", seen=seen).value == [11, 12]
    assert [len(step) for step in seen] == [2, 2]


def test_answers_may_come_one_by_one_and_in_any_order():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        first = await session.start("await asyncio.gather(fs__read(n=1), fs__read(n=2))")
        low, high = first.wanted
        second = await session.resume({high.id: Answer(value="second")})
        assert second.wanted == (low,)
        return await session.resume({low.id: Answer(value="first")})

    assert with_engine(use) == Ended(["first", "second"])


def test_a_call_used_at_once_stands_still_beside_others():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        step = await session.start("t = [fs__read(n=1)]\nx = fs__read(n=2)\n[x, await t[0]]")
        early, still = step.wanted
        assert (await session.resume({early.id: Answer(value="a")})).wanted == (still,)
        return await session.resume({still.id: Answer(value="b")})

    assert with_engine(use) == Ended(["b", "a"])


def test_places_are_those_of_the_script():
    seen = []
    inner = "async def f():\n    return await codemode.fs__read(b=2)\nawait f()"
    run("# é\nx = 'ü'; y = await fs__read(a=1)\n" + inner, seen=seen)
    assert [(wanted.line, wanted.column) for step in seen for wanted in step] == [(2, 19), (4, 17)]


def test_a_refusal_can_be_caught_and_says_why():
    source = (
        "try:\n    await fs__delete(path='x')\nexcept PermissionError as error:\n    said = str(error)\nsaid"
    )
    assert run(source, answer=lambda _: Answer(denied="policy")).value == "ToolCallDenied: fs__delete: policy"
    failed = run("x = 1\nawait fs__delete(path='x')", answer=lambda _: Answer(denied="policy"))
    assert failed == Failed("error", "PermissionError: ToolCallDenied: fs__delete: policy", 2)


def test_a_tool_s_error_is_its_text():
    source = "try:\n    await fs__read(path='x')\nexcept RuntimeError as error:\n    said = str(error)\nsaid"
    assert run(source, answer=lambda _: Answer(error="ENOENT: x")).value == "ENOENT: x"


def test_a_swallowed_refusal_executes_nothing():
    seen = []
    body = "    try:\n        await fs__delete(path=i)\n    except BaseException:\n        pass\n"
    source = f"for i in range(5):\n{body}'on'"
    assert run(source, answer=lambda _: Answer(denied="policy"), seen=seen) == Ended("on")
    assert len(seen) == 5


@pytest.mark.parametrize(
    "source", ["globals()", "fs__write(path='x')", "await call_tool('fs__write', {})", "codemode.x()"]
)
def test_a_name_that_is_no_tool_is_never_asked(source):
    seen = []
    assert run(source, seen=seen).kind == "error"
    assert seen == []


@pytest.mark.invariant("a function is called what it is")
def test_a_tool_is_judged_by_its_own_name_whatever_the_script_calls_it():
    seen = []
    run(
        "fs__read = fs__delete\nharmless = codemode.fs__delete\nawait fs__read(n=1)\nawait harmless(n=2)",
        seen=seen,
    )
    assert {wanted.name for step in seen for wanted in step} == {"fs__delete"}


@pytest.mark.parametrize(
    "argument",
    ["float('nan')", "{1, 2}", "{1: 2}", "b'x'", "10 ** 30", "'x' * 2000000", "loop", "deep"],
)
def test_arguments_that_are_not_json_are_refused_to_the_script(argument):
    seen = []
    source = f"""
loop = []
loop.append(loop)
deep = []
for i in range(100000):
    deep = [deep]
try:
    await fs__read(a={argument})
except TypeError as error:
    said = 'refused'
said"""
    assert run(source, seen=seen) == Ended("refused")
    assert seen == []


def test_what_is_printed_is_kept_in_order():
    seen = []
    ended = run("print('a', 1)\nx = await fs__read(path='a')\nprint('b')\nx", seen=seen)
    assert ended.output == "a 1\nb\n"


def test_a_call_nobody_awaited_is_not_made_and_said_so():
    seen = []
    ended = run("t = [fs__read(path='a')]\n5", seen=seen)
    assert (ended.value, seen) == (5, [])
    assert "fs__read on line 1 was not awaited" in ended.output


def test_yaml_both_ways():
    source = (
        "x = yaml.parse('a: [1, no]')\nx['b'] = await codemode.utils__yaml__parse('c: 1')\nyaml_stringify(x)"
    )
    assert run(source).value == "a:\n- 1\n- 'no'\nb:\n  c: 1\n"


def test_a_tool_of_the_same_name_comes_before_our_own_function():
    seen = []
    tools = (Tool("utils__yaml__parse"),)
    run("await codemode.utils__yaml__parse(text='a: 1')", tools=tools, seen=seen)
    assert seen[0][0].name == "utils__yaml__parse"


def test_sleeping_is_real_and_costs_the_script_s_time():
    both = "await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2))"
    source = f"import time\nbegan = time.time()\n{both}\ntime.sleep(0.1)\n"
    assert run(source + "time.time() - began").value > 0.29
    for sleeps in ("await asyncio.sleep(50)", "import time\ntime.sleep(50)"):
        assert run(sleeps, limits=SECOND).kind == "time"
    for sleeps in ("await asyncio.sleep(0.1)", "time.sleep(0.1)"):
        source = f"import time\nfor i in range(4):\n    {sleeps}"
        assert run(source, limits=Limits(seconds=0.3)).kind == "time"


def test_sleeps_that_begin_together_pass_together():
    """One after the other they would take longer than the script may."""
    each = LONG.seconds / 200
    assert run(f"len(await asyncio.gather(*[asyncio.sleep({each}) for i in range(400)]))") == Ended(400)
    naps = "async def nap(n, s):\n    await asyncio.sleep(s)\n    order.append(n)\n"
    source = f"order = []\n{naps}await asyncio.gather(nap('long', 0.3), nap('short', 0.1))\norder"
    assert run(source) == Ended(["short", "long"])


def test_a_sleep_beside_a_call_lets_the_call_out():
    seen = []
    assert run("await asyncio.gather(asyncio.sleep(0.05), fs__read(n=1))", seen=seen) == Ended(
        [None, {"n": 1}]
    )
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\nawait codemode.fs__read(path=1)", 2),
        ("await fs__read(path='a', more=1)", 1),
        ("await codemode.fs__write(path='a')", 1),
        ("x = await fs__read(path='a')\nlen(5)", 2),
        ("import statistics", 1),
        ("await fs__read()", 1),
    ],
)
def test_wrong_types_are_found_before_anything_runs(source, line):
    seen = []
    failed = run("await fs__delete(path='first')\n" + source, stubs=STUBS, seen=seen)
    assert (failed.kind, failed.line, seen) == ("types", line + 1, [])
    assert f"line {line + 1}: " in failed.message


@pytest.mark.parametrize(
    "source",
    [
        "await codemode.fs__read({'path': 'a'})",
        "await fs__read({\n  'path': 'a'})",
        "if True:\n    return await fs__read(path='a')",
        "fs__read(path='a')",
        "await call_tool('fs__read', {'path': 'a'})",
        "json.loads(json.dumps(await fs__read(path='a')))",
        "yaml.parse('path: a')",
    ],
)
def test_what_is_right_here_passes_the_check(source):
    assert run(source, stubs=STUBS) == Ended({"path": "a"})


def test_a_script_is_started_once_and_answers_fit():
    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        with pytest.raises(InputError):
            await session.resume({})
        with pytest.raises(InputError):
            await session.dump()
        step = await session.start("await fs__read(n=1)")
        assert isinstance(step, Paused)
        with pytest.raises(InputError):
            await session.start("1")
        with pytest.raises(InputError):
            await session.resume({step.wanted[0].id + 1: Answer()})
        assert await follow(session, step) == Ended({"n": 1})
        with pytest.raises(InputError):
            await session.resume({})
        await session.close()
        await session.close()

    with_engine(use)


def test_scripts_know_nothing_of_each_other():
    async def use(engine):
        await run_in(engine, "import json\nleft = 1\njson.left = 1")
        return await run_in(engine, "try:\n    left\nexcept NameError:\n    x = 'none'\nx")

    assert with_engine(use, workers=1) == Ended("none")


@pytest.mark.parametrize(
    "value",
    ["'x' * 300000", "[0] * 200000", "{str(i): i for i in range(40000)}"],
    ids=["text", "list", "dict"],
)
def test_a_result_larger_than_the_limit_ends_the_run(value):
    assert run(value, limits=LONG).kind == "output"
    assert run("'x' * 2000", limits=Limits(result=1000)).kind == "output"


GATHERED = "(await asyncio.gather(fs__read(path='a')))[0]"


def test_a_result_nested_beyond_reason_is_refused():
    failed = run("x = []\nfor i in range(200000):\n    x = [x]\nx")
    assert failed.kind == "error"
    assert "nested" in failed.message


def test_a_script_stands_at_its_call_until_it_is_answered():
    async def go(engine):
        session = await engine.open(TOOLS, Limits())
        step = await session.start("x = await fs__read(path='a')\nx")
        assert isinstance(step, Paused) and isinstance(session.interpreter.at, Called)
        return await session.resume({step.wanted[0].id: Answer(value=3)})

    assert with_engine(go) == Ended(3)


def test_an_error_is_raised_where_the_script_awaits():
    source = "try:\n    await fs__read(path='a')\nexcept RuntimeError as error:\n    text = str(error)\ntext"
    assert run(source, answer=lambda _wanted: Answer(error="no such file")) == Ended("no such file")


def test_a_worker_that_dies_while_a_call_is_made_is_said_with_the_answer():
    async def go(engine):
        session = await engine.open(TOOLS, Limits())
        step = await session.start("x = await fs__read(path='a')\nx")
        os.kill(session.interpreter.worker.pid, signal.SIGKILL)
        failed = await session.resume({step.wanted[0].id: Answer(value=3)})
        return failed.kind, session.interpreter.worker

    assert with_engine(go) == ("crash", None)


@pytest.mark.parametrize("way", ["close", "dump"])
def test_a_script_that_stands_at_its_await_can_be_put_away_and_ended(way):
    async def go(engine):
        session = await engine.open(TOOLS, Limits())
        step = await session.start("x = await fs__read(path='a')\nx")
        if way == "close":
            await session.close()
            return session.interpreter.worker
        again = await engine.load(await session.dump(), TOOLS, Limits())
        return await again.resume({step.wanted[0].id: Answer(value=3)})

    assert with_engine(go) == (None if way == "close" else Ended(3))


def test_a_script_that_was_put_away_beyond_its_call_goes_on_from_there():
    """As scripts were that wait since before they stood at their calls."""

    async def go(engine):
        session = await engine.open(TOOLS, Limits())
        step = await session.start("x = await fs__read(path='a')\nx")
        await session.interpreter.step(answer(session.interpreter.at.number, {"future": ...}))
        session._pending.still = None
        again = await engine.load(await session.dump(), TOOLS, Limits())
        assert isinstance(again.interpreter.at, Waiting)
        return await again.resume({step.wanted[0].id: Answer(value=3)})

    assert with_engine(go) == Ended(3)


@pytest.mark.parametrize(
    "source",
    [
        "x = fs__read(path='a')\ny = fs__delete(path=x)\ny",
        "fs__delete(path=fs__read(path='a'))",
        "await fs__delete({'path': fs__read(path='a')})",
        "x = await fs__delete(path=await fs__read(path='a'))\nx",
        "call_tool('fs__delete', {'path': codemode.fs__read(path='a')})",
    ],
)
def test_what_a_tool_gave_is_given_to_the_next(source):
    assert run(source, answer=lambda wanted: Answer(value=wanted.arguments["path"])) == Ended("a")


def test_a_call_that_nobody_awaited_is_no_argument():
    """INVARIANT: a tool is never called with the description of something."""
    seen = []
    failed = run("f = fs__delete\nx = fs__read(path='a')\nf(path=x)", seen=seen)
    assert failed.kind == "error" and "write `await` before it" in failed.message
    assert {wanted.name for step in seen for wanted in step} <= {"fs__read"}


@pytest.mark.parametrize("value", ["short", ["x"] * 50_000], ids=["little", "much"])
@pytest.mark.parametrize("source", ["await fs__read(path='a')", "fs__read(path='a')", GATHERED])
def test_much_of_a_value_is_gone_through_beside_the_loop(monkeypatch, value, source):
    """In and out: whoever else is served does not wait for it."""
    here, where = threading.get_ident(), set()

    def noted(name):
        work = getattr(python_session, name)

        def note(*given):
            where.add(threading.get_ident() == here)
            return work(*given)

        return note

    for name in ("answer", "answers"):
        # What only says that an answer will come is always said at once.
        monkeypatch.setattr(python_session, name, noted(name))

    def answer(wanted):
        assert wanted.arguments["path"] in ("a", value)
        return Answer(value=value)

    ended = run(f"x = {source}\nawait fs__read(path=x)", answer=answer)
    assert ended == Ended(value)
    assert (False in where) is (value != "short")


LAUGHS = "x = [1] * 10\nfor _ in range(12):\n    x = [x] * 10\n"


@pytest.mark.invariant("only so much of it is looked at")
@pytest.mark.parametrize("use", ["fs__read(path=x)", "await fs__read(path=x)", "x", "yaml.stringify(x)"])
def test_what_is_small_in_the_script_and_without_end_outside_is_refused(use):
    """INVARIANT: nobody here goes through more of a script's value than may cross."""
    failed = run(LAUGHS + use, limits=LONG)
    assert isinstance(failed, Failed) and "larger than" in failed.message
