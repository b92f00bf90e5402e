"""JavaScript and TypeScript: what scripts may look like, what they find, what they may use, how they wait."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import zlib

import msgspec
import pytest
import uvloop

from checkrein.errors import InputError
from checkrein.execute import js_state
from checkrein.execute.sandbox import Answer, DamagedError, Ended, Failed, Limits, Paused, Tool
from javascript_ground import LONG, TOOLS, compiled, echo, follow, run, run_in, running, with_engine
from patience import PATIENCE, soon, until
from scripts import freeze

BATCH = (
    "console.log('before'); const r = await Promise.all([1, 2, 3].map(n => codemode.fs__read({n}))); "
    "console.log('after'); return r"
)


async def started(engine, source, limits=LONG):
    session = await engine.open(TOOLS, limits)
    return session, await session.start(source)


def first_step(source):
    async def use(engine):
        return (await started(engine, source))[1]

    return with_engine(use)


@pytest.fixture(scope="module")
def shared():
    """One engine for many short scripts."""
    from checkrein.execute.javascript import JavaScriptEngine

    with asyncio.Runner() as runner:
        engine = runner.run(_made(JavaScriptEngine))
        yield lambda source, answer=echo, limits=LONG: runner.run(run_in(engine, source, answer, limits))
        runner.run(engine.close())


async def _made(kind):
    return kind(compiled())


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", 2),
        ("return 2", 2),
        ("const x = 3; x", 3),
        ("const x = await codemode.fs__read({a: 4}); return x.a", 4),
        ("const x = await codemode.fs__read({a: 5}); x.a", 5),
        ("async () => 6", 6),
        ("() => 7;", 7),
        ("async () => { const x = await codemode.fs__read({a: 8}); return x.a }", 8),
        ("(async () => 9)()", 9),
        ("if (true) { return 10 }", 10),
        ("return 11 // done", 11),
        ("", None),
        ("return", None),
        ("undefined", None),
        ("const x: number = 12; x", 12),
        ("const f = async (a: number): Promise<number> => a; return await f(13 as any)", 13),
        ("interface A { a: number }\nasync (): Promise<number> => 14", 14),
        ("enum E { A = 15 }\nE.A", 15),
        ("return {type: 'text', text: 'x'}", {"type": "text", "text": "x"}),
        ("[{type: 'image', data: 'AA=='}]", [{"type": "image", "data": "AA=="}]),
        ("'\\ud800'", "\N{REPLACEMENT CHARACTER}"),
        ("({a: undefined, b: NaN, c: 1n})", {"b": None, "c": "1"}),
    ],
)
def test_forms(shared, source, value):
    assert shared(source) == Ended(value)


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("let x = ;", "SyntaxError: unexpected token", 1),
        ("const a = 1;\nfoo bar", "SyntaxError", 2),
        ("const x: = 2", "SyntaxError", 1),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_runs(shared, source, message, line):
    step = shared(f"{source}\ncodemode.fs__delete({{}})")
    assert (step.kind, step.line) == ("syntax", line)
    assert step.message.startswith(message)


def test_a_syntax_error_while_running_does_not_run_it_again(shared):
    calls = []

    def count(wanted):
        calls.append(wanted)
        return Answer(value=1)

    step = shared("await codemode.fs__read({}); JSON.parse('{')", count)
    assert (step.kind, len(calls)) == ("error", 1)
    assert shared("codemode.fs__delete({}); throw new SyntaxError('return')", count).kind == "error"
    assert len(calls) == 1


def test_all_calls_of_a_batch_come_at_once():
    step = first_step(BATCH)
    assert [(each.name, each.arguments) for each in step.wanted] == [
        ("fs__read", {"n": n}) for n in (1, 2, 3)
    ]
    assert len({each.id for each in step.wanted}) == 3
    assert step.output == "before\n"
    assert run(BATCH) == Ended([{"n": 1}, {"n": 2}, {"n": 3}], "before\nafter\n")


def test_some_answers_are_enough_to_go_on():
    async def use(engine):
        session, step = await started(
            engine,
            "const a = codemode.fs__read({n: 1}); "
            "const b = codemode.fs__read({n: 2}).then(() => codemode.fs__delete({})); await a; await b; 1",
        )
        first, second = step.wanted
        step = await session.resume({second.id: Answer(value=1)})
        assert [each.name for each in step.wanted] == ["fs__read", "fs__delete"]
        assert step.wanted[0] == first
        with pytest.raises(InputError):
            await session.resume({second.id: Answer(value=1)})
        return await follow(session, step)

    assert with_engine(use) == Ended(1)


def test_a_call_nobody_awaits_is_made_all_the_same():
    step = first_step("codemode.mail__send({to: 'a'}); 1")
    assert [each.name for each in step.wanted] == ["mail__send"]
    assert run("codemode.mail__send({to: 'a'}); 1") == Ended(1)


def test_a_call_of_a_script_that_failed_is_not_made():
    assert first_step("codemode.mail__send({}); throw new Error('x')") == Failed("error", "Error: x", 1)


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("await codemode.fs__read({})", 1, 6),
        ("\n\n  const x = 1, y = await codemode['fs__read']({})", 3, 25),
        ("return await codemode.fs__read({})", 1, 13),
        ("interface A {\n  a: number\n}\n\nconst x: A = {a: 1}\n\n  await codemode.fs__read(x as any)", 7, 8),
        ("const f = codemode.fs__read;\nawait f({})", 2, 6),
        ("1;\nawait codemode.fs__read({\n  a: [1, 2],\n  b: String(3),\n})", 2, 6),
        ("const n = 'fs__read';\nawait codemode[n]({a: n})", 2, 6),
        ("const p = {};\ncodemode.nope ?? codemode?.fs__read?.(p)", 2, 17),
    ],
)
def test_a_call_says_where_it_is(source, line, column):
    (wanted,) = first_step(source).wanted
    assert (wanted.line, wanted.column) == (line, column)


def test_what_a_script_finds(shared):
    assert shared("return Object.keys(codemode)").value == sorted(tool.name for tool in TOOLS)
    assert shared(
        "return 'fs__read' in codemode && !('nope' in codemode) && codemode.nope === undefined"
    ) == Ended(True)
    assert shared("return [typeof fetch, typeof require, typeof process, typeof __host]") == Ended(
        ["undefined"] * 4
    )
    step = shared("\nawait codemode.nope({})")
    assert step == Failed("error", 'TypeError: not a function (codemode has no tool "nope")', 2)


def test_no_two_scripts_draw_the_same_numbers(shared):
    drawn = [shared("[Math.random(), Math.random()]").value for _ in range(3)]
    assert len({number for pair in drawn for number in pair}) == 6
    assert all(0 <= number < 1 for pair in drawn for number in pair)


def test_a_denial_can_be_caught(shared):
    caught = (
        "try { await codemode.fs__delete({path: 'x'}) } catch (e) { return [e.name, e.toolName, e.reason, "
        "e instanceof ToolCallDeniedError, e instanceof Error] }"
    )
    denied = lambda _wanted: Answer(denied="elicitation_declined")  # noqa: E731
    assert shared(caught, denied) == Ended(
        ["ToolCallDeniedError", "fs__delete", "elicitation_declined", True, True]
    )
    step = shared("\nawait codemode.fs__delete({})", denied)
    assert step == Failed("error", "ToolCallDeniedError: fs__delete was not allowed: elicitation_declined", 2)


def test_a_tools_error_can_be_read(shared):
    failing = lambda _wanted: Answer(error="no such file", value={"isError": True})  # noqa: E731
    assert shared("codemode.fs__read({}).catch(e => [e.name, e.message, e.result])", failing) == Ended(
        ["Error", "no such file", {"isError": True}]
    )
    assert shared("1;\n await codemode.fs__read({})", failing) == Failed("error", "Error: no such file", 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{a: NaN}", "NaN is no JSON"),
        ("{a: [1, -Infinity]}", "-Infinity is no JSON"),
        ("{a: 'x'.repeat(2 ** 21)}", "larger than 1048576 bytes"),
        ("{a: '\\u00e9'.repeat(6e5)}", "larger than 1048576 bytes"),
        ("{a: '\\ud800'}", "not valid Unicode"),
        ("{'\\udfff': 1}", "not valid Unicode"),
        ("{a: 1n}", "BigInt"),
        ("{a: 1e20}", "beyond 64 bits"),
        ("3", "takes one object"),
        ("[1]", "takes one object"),
        ("{}, {}", "takes one object"),
        ("(() => { let d = {}; for (let i = 0; i < 70; i++) d = {d}; return d })()", "deeper than 64"),
        ("(() => { const x = {}; x.x = x; return x })()", "circular"),
    ],
)
def test_what_is_no_plain_json_does_not_leave(shared, given, message):
    calls = []
    step = shared(f"codemode.fs__delete({given}).catch(e => String(e))", calls.append)
    assert message in step.value
    assert calls == []


@pytest.mark.invariant("the arguments are read once, here")
@pytest.mark.parametrize(
    "source",
    [
        "let n = 0; codemode.fs__delete({get path() { return n++ ? '/etc' : '/safe' }})",
        "const a = {path: '/safe'}; const p = codemode.fs__delete(a); a.path = '/etc'; await p",
        "let n = 0; codemode.fs__delete({path: {toJSON() { return n++ ? '/etc' : '/safe' }}})",
        "JSON.stringify = () => '{\"path\":\"/etc\"}'; codemode.fs__delete({path: '/safe'})",
        "codemode.fs__delete(new Proxy({path: '/safe'}, {get: (t, k) => k === 'path' ? '/safe' : t[k]}))",
    ],
)
def test_what_is_judged_is_what_was_written_once(shared, source):
    judged = []

    def judge(wanted):
        judged.append(wanted.arguments)
        return Answer(value=1)

    assert shared(source, judge) == Ended(1)
    assert judged == [{"path": "/safe"}]


def test_answers_do_not_reach_prototypes(shared):
    answer = lambda _wanted: Answer(value={"__proto__": {"bad": 1}, "a": "\ud800"})  # noqa: E731
    assert shared(
        "const r = await codemode.fs__read({}); [r.a.length, ({}).bad === undefined]", answer
    ) == Ended([1, True])


def test_a_result_too_large_or_deep_for_a_script_is_its_error(shared):
    deep = []
    for _ in range(70):
        deep = [deep]
    for value in ("x" * (1 << 21), deep):
        step = shared(
            "codemode.fs__read({}).catch(e => e.message)", lambda _wanted, value=value: Answer(value=value)
        )
        assert "larger or deeper" in step.value


def test_large_answers_arrive_all_the_same(shared):
    batch = "const r = await Promise.all([...Array(24).keys()].map(n => codemode.fs__read({n})));"
    source = f"{batch} r.map(x => x.length)"
    large = lambda _wanted: Answer(value="é" * 500_000)  # noqa: E731
    assert shared(source, large) == Ended([500_000] * 24)


def test_a_flood_of_calls_is_refused_to_the_script(shared):
    many = "const l = await Promise.allSettled([...Array(1200).keys()].map(n => codemode.fs__read({n}))); "
    step = shared(many + "l.filter(x => x.status === 'fulfilled').length")
    assert step == Ended(1000)
    heavy = "codemode.fs__read({a: 'x'.repeat(1e6)})"
    step = shared(f"(await Promise.allSettled([{', '.join([heavy] * 6)}])).map(x => x.status)")
    assert step == Ended(["fulfilled"] * 4 + ["rejected"] * 2)


def test_timers_take_the_time_they_say(shared):
    source = "const t = Date.now(); await new Promise(r => setTimeout(r, 150, 1)); Date.now() - t"
    assert shared(source).value >= 149
    order = (
        "const l = []; setTimeout(() => l.push('b'), 20); setTimeout(() => l.push('a'), 5); "
        "const gone = setTimeout(() => l.push('never'), 1); clearTimeout(gone); let n = 0; "
        "const stop = (i, r) => { if (++n > 2) { clearInterval(i); r() } }; "
        "await new Promise(r => { const i = setInterval(() => stop(i, r), 9) }); [l, n]"
    )
    assert shared(order) == Ended([["a", "b"], 3])
    assert (
        shared("await new Promise(r => setTimeout(() => { throw new Error('late') }, 1))").message
        == "Error: late"
    )


def test_waiting_costs_no_computing_time():
    source = "await new Promise(r => setTimeout(r, 300)); await codemode.fs__read({})"

    async def use(engine):
        session = await engine.open(TOOLS, LONG)
        # The first script waits for processes to start.
        await run_in(engine, "1")
        began = time.monotonic()
        assert isinstance(await session.start(source), Paused)
        whole = time.monotonic() - began
        return js_state.unpack(await session.dump()), whole

    state, whole = with_engine(use)
    assert state.slept >= 0.3
    # No moment is counted as both.
    assert state.spent + state.slept <= whole


def test_timers_do_not_wait_for_ever(shared):
    step = shared("await new Promise(r => setTimeout(r, 1e9))")
    assert (step.kind, "timers wait for more than" in step.message) == ("time", True)


def test_console(shared):
    step = shared(
        "console.log('a', 1, {b: [2]}, null); console.error('%s is %d%%', 'x', 3); "
        "console.warn(new Error('e')); 1"
    )
    assert step == Ended(1, 'a 1 {"b":[2]} null\nx is 3%\nError: e\n')
    assert (
        shared(
            "console.log({toJSON() { throw 1 }}, Symbol('s'), 1n, () => 1); console.log('\\ud800')"
        ).output.count("\n")
        == 2
    )


def test_yaml(shared):
    assert shared("yaml.parse('a: [1, no]')") == Ended({"a": [1, "no"]})
    assert shared("yaml.stringify({a: [1, {b: 2}]})") == Ended("a:\n- 1\n- b: 2\n")
    assert shared("codemode.utils__yaml__parse({text: 'a: 1'})") == Ended({"a": 1})
    assert "aliases" in shared("try { yaml.parse('a: *b') } catch (e) { return e.message }").value


# -- limits ----------------------------------------------------------------------------------------------


def test_what_is_printed_is_cut_and_a_flood_ends_it(shared):
    limits = Limits(seconds=PATIENCE, output=1000)
    step = shared("for (let i = 0; i < 30; i++) console.log('x'.repeat(99)); 1", limits=limits)
    assert step.value == 1
    assert step.output.endswith("more output was cut\n")
    assert 1000 <= len(step.output.encode()) < 1100
    flood = shared("for (;;) { try { console.log('x'.repeat(999)) } catch (e) {} }", limits=limits)
    assert (flood.kind, len(flood.output) < 1100) == ("output", True)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("'x'.repeat(300000)", "output"),
        ("let d = {}; for (let i = 0; i < 70; i++) d = {d}; d", "output"),
        ("let d = {}; for (let i = 0; i < 1e5; i++) d = {d}; d", "error"),
        ("const x = {}; x.x = x; x", "error"),
        ("const l = []; for (;;) l.push(new Uint8Array(1e6).fill(1))", "memory"),
        ("(function f() { f() })()", "error"),
        ("throw {get message() { throw 1 }, toString() { throw 2 }}", "error"),
        ("await new Promise(() => {})", "error"),
        ("x" * 70000, "syntax"),
    ],
)
def test_too_much(shared, source, kind):
    assert shared(source).kind == kind


@pytest.mark.parametrize(
    "source",
    [
        "for (;;);",
        "for (;;) { try { for (;;); } catch (e) {} }",
        "const f = () => { Promise.resolve().then(f); }; f(); await new Promise(() => {})",
        "'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e4)).length",
        "({get a() { for (;;); }})",
        "throw {toJSON() { for (;;); }}",
        "const f = () => setTimeout(f, 0); f(); await new Promise(() => {})",
    ],
)
def test_a_loop_ends_in_time_and_leaves_nothing_running(source):
    async def use(engine):
        _, step = await started(engine, f"console.log('here'); {source}", Limits(seconds=0.5))
        # Only the spare ones are left.
        await soon(lambda: len(running(engine.nursery.pid)) <= 2)
        return step, await run_in(engine, "1 + 1")

    step, after = with_engine(use)
    assert (step.kind, step.output) == ("time", "here\n")
    assert after == Ended(2)


def test_a_script_has_all_of_its_time(shared):
    """It computes for longer than any grace, and is not ended before its limit."""
    assert shared("const t = Date.now(); while (Date.now() - t < 600); 'through'") == Ended("through")


def test_a_worker_that_heeds_no_limit_is_ended_all_the_same():
    async def use(engine):
        session = await engine.open(TOOLS, Limits(seconds=0.2))
        computing = asyncio.ensure_future(session.start("for (;;);"))
        worker = await soon(lambda: session._worker or computing.done())
        if not computing.done():
            freeze(worker.pid)
        step = await asyncio.wait_for(computing, PATIENCE)
        return step, await run_in(engine, "1 + 1")

    step, after = with_engine(use)
    assert (step.kind, after) == ("time", Ended(2))


def test_computing_time_adds_up_over_steps(shared):
    source = (
        "for (let i = 0; i < 9; i++) { await codemode.fs__read({}); "
        "const t = Date.now(); while (Date.now() - t < 150); } 1"
    )
    step = shared(source, limits=Limits(seconds=0.6))
    assert step.kind == "time"


def test_a_crash_is_its_own_and_the_next_script_runs():
    async def use(engine):
        session, step = await started(engine, "console.log('x'); await codemode.fs__read({}); for (;;);")
        other, waits = await started(engine, "await codemode.fs__read({}); 3")
        task = asyncio.create_task(follow(session, step))
        os.kill((await soon(lambda: session._worker)).pid, signal.SIGKILL)
        return await task, await run_in(engine, "1 + 1"), await follow(other, waits)

    crashed, after, other = with_engine(use)
    assert (crashed.kind, crashed.output) == ("crash", "x\n")
    assert after == Ended(2)
    assert other == Ended(3)


def test_when_the_first_process_dies_another_is_started():
    async def use(engine):
        session, step = await started(engine, "await codemode.fs__read({}); 3", Limits())
        os.kill(engine.nursery.pid, signal.SIGKILL)
        await soon(lambda: session._worker.lost)
        return await follow(session, step), await run_in(engine, "1 + 1", limits=Limits())

    lost, after = with_engine(use)
    assert lost.kind == "crash"
    assert after == Ended(2)


# -- waiting ---------------------------------------------------------------------------------------------


async def suspended(engine, source=BATCH, limits=LONG):
    session, step = await started(engine, source, limits)
    assert isinstance(step, Paused)
    return step, await session.dump()


def test_a_script_goes_on_from_bytes():
    async def use(engine):
        step, dumped = await suspended(engine)
        session = await engine.load(dumped, TOOLS, LONG)
        return len(dumped), await follow(session, step)

    size, ended = with_engine(use)
    assert ended == Ended([{"n": 1}, {"n": 2}, {"n": 3}], "before\nafter\n")
    assert size < 400 << 10


def test_a_script_goes_on_in_another_process(tmp_path):
    step, dumped = with_engine(suspended)
    (tmp_path / "run").write_bytes(dumped)
    program = """
        import asyncio, sys
        from pathlib import Path
        from checkrein.execute.javascript import JavaScriptEngine
        from checkrein.execute.sandbox import Answer, Limits, Tool
        async def main():
            engine = JavaScriptEngine(Path(sys.argv[2]))
            session = await engine.load(Path(sys.argv[1]).read_bytes(), [Tool("fs__read")], Limits())
            print(await session.resume({int(number): Answer(value=number) for number in sys.argv[3:]}))
            await engine.close()
        asyncio.run(main())
    """
    numbers = [str(wanted.id) for wanted in step.wanted]
    command = [sys.executable, "-c", textwrap.dedent(program), tmp_path / "run", compiled(), *numbers]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert shown.stdout.strip() == repr(Ended(numbers, "before\nafter\n"))


def test_a_suspended_script_keeps_its_identity_and_its_counters():
    source = (
        "const a = {}; const b = [a]; let calls = 0; "
        "const next = () => { calls++; return codemode.fs__read({calls}) };"
        "const t = Date.now(); while (Date.now() - t < 200); console.log('x'.repeat(50)); "
        "await next(); await next(); "
        "console.log('y'.repeat(50)); [a === b[0], calls]"
    )

    async def use(engine):
        limits = Limits(seconds=PATIENCE, output=60)
        step, dumped = await suspended(engine, source, limits)
        session = await engine.load(dumped, TOOLS, limits)
        again = await session.resume({step.wanted[0].id: Answer(value=1)})
        # A number is never given twice, however often the script was put away.
        assert again.wanted[0].id > step.wanted[0].id
        assert again.wanted[0].arguments == {"calls": 2}
        second = await session.dump()
        assert js_state.unpack(second).spent >= 0.2
        session = await engine.load(second, TOOLS, limits)
        ended = await session.resume({again.wanted[0].id: Answer(value=1)})
        short = await engine.load(second, TOOLS, Limits(seconds=0.1))
        return ended, await short.resume({again.wanted[0].id: Answer(value=1)})

    ended, short = with_engine(use)
    assert ended.value == [True, 2]
    assert ended.output.startswith("x" * 50 + "\n" + "y" * 9)
    assert ended.output.endswith("more output was cut\n")
    assert short.kind == "time"


def test_suspended_scripts_hold_no_process():
    async def use(engine):
        async def one():
            return (await suspended(engine, limits=Limits()))[1]

        dumped = [await one() for _ in range(3)]
        dumped += await asyncio.gather(*(one() for _ in range(20)))
        await soon(lambda: len(running(engine.nursery.pid)) <= 2)
        return len(dumped), len(running(engine.nursery.pid))

    assert with_engine(use) == (23, 2)


def test_damage_is_found_before_anything_runs():
    async def use(engine):
        _, dumped = await suspended(engine)
        for broken in (b"", dumped[:-1], dumped[:100] + b"\0" + dumped[101:], dumped + b"x", b"x" * 1000):
            with pytest.raises(DamagedError, match="damaged"):
                await engine.load(broken, TOOLS, LONG)

    with_engine(use)


def test_another_build_of_the_sandbox_is_refused(monkeypatch):
    async def use(engine):
        _, dumped = await suspended(engine)
        monkeypatch.setattr(js_state, "build", lambda: b"\0" * 32)
        with pytest.raises(DamagedError, match="another version"):
            await engine.load(dumped, TOOLS, LONG)

    with_engine(use)


def test_what_was_changed_with_care_does_no_harm():
    """The caller authenticates; should it fail to, the worker is the one that breaks."""

    async def use(engine):
        _, dumped = await suspended(engine)
        state = js_state.unpack(dumped)
        for changed in (
            {"image": b"no"},
            {"size": state.size - 1},
            {"meta": {**state.meta, "control": 12345}},
            {"meta": {}},
            {"size": 1 << 40},
        ):
            with pytest.raises(DamagedError):
                await engine.load(js_state.pack(msgspec.structs.replace(state, **changed)), TOOLS, LONG)
        return await run_in(engine, "1 + 1")

    assert with_engine(use) == Ended(2)


def test_flipped_bits_that_pass_for_whole_do_no_harm():
    """Whatever a broken sandbox does it does in its own process, and within its limits."""
    chance = random.Random(7)

    async def use(engine):
        step, dumped = await suspended(engine)
        state = js_state.unpack(dumped)
        image, kinds = zlib.decompress(state.image), set()
        for _ in range(25):
            broken = bytearray(image)
            for _ in range(20):
                broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
            changed = msgspec.structs.replace(state, image=zlib.compress(bytes(broken), 1))
            try:
                session = await engine.load(js_state.pack(changed), TOOLS, LONG)
                kinds.add(type(await follow(session, step)))
            except DamagedError:
                kinds.add(DamagedError)
        return kinds, await run_in(engine, "1 + 1")

    kinds, after = with_engine(use)
    assert kinds <= {Ended, Failed, DamagedError}
    assert after == Ended(2)


def test_many_at_once_and_none_is_mixed_up():
    async def use(engine):
        async def one(number):
            return await run_in(engine, f"(await codemode.fs__read({{n: {number}}})).n", limits=Limits())

        return await asyncio.gather(*(one(number) for number in range(40)))

    assert with_engine(use, workers=8) == [Ended(number) for number in range(40)]


def test_it_runs_on_the_other_kind_of_loop():
    async def use(engine):
        step, dumped = await suspended(engine)
        session = await engine.load(dumped, TOOLS, LONG)
        source = "await new Promise(r => setTimeout(r, 10)); for (;;);"
        late = await run_in(engine, source, limits=Limits(seconds=0.2))
        return await follow(session, step), late.kind

    ended, kind = with_engine(use, loop=uvloop.new_event_loop)
    assert ended == Ended([{"n": 1}, {"n": 2}, {"n": 3}], "before\nafter\n")
    assert kind == "time"


def test_closing_ends_what_runs():
    async def use(engine):
        session = await engine.open(TOOLS, Limits())
        task = asyncio.create_task(session.start("for (;;);"))
        pid = (await soon(lambda: session._worker)).pid
        await session.close()
        await session.close()
        step = await task
        with pytest.raises(InputError):
            await session.start("1")
        with pytest.raises(InputError):
            await session.resume({})
        with pytest.raises(InputError):
            await session.dump()
        return step, pid

    step, pid = with_engine(use)
    assert step.kind == "crash"
    gone([pid])


def test_nothing_outlives_us():
    program = """
        import asyncio, sys
        from pathlib import Path
        from checkrein.execute.javascript import JavaScriptEngine
        from checkrein.execute.sandbox import Limits
        async def main():
            engine = JavaScriptEngine(Path(sys.argv[1]))
            session = await engine.open([], Limits())
            task = asyncio.create_task(session.start("for (;;);"))
            while not session._worker: await asyncio.sleep(0.01)
            print(engine.nursery.pid, session._worker.pid, flush=True)
            await task
        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), compiled()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    gone(pids)


def gone(pids):
    until(lambda: not any(_runs(pid) for pid in pids), failing="it still runs")


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_a_worker_is_given_nothing_of_ours(monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "1")

    async def use(engine):
        session, _ = await started(engine, "await codemode.fs__read({})", Limits())
        pid = session._worker.pid
        files = sorted(
            os.readlink(f"/proc/{pid}/fd/{each}").split(":")[0] for each in os.listdir(f"/proc/{pid}/fd")
        )
        with open(f"/proc/{pid}/environ") as environment, open(f"/proc/{pid}/limits") as limits:
            return environment.read(), limits.read(), files, os.getsid(pid) != os.getsid(0)

    environment, limits, files, apart = with_engine(use)
    assert "SECRET_OF_OURS" not in environment
    assert apart
    assert [
        line.split()[-3:-1] for line in limits.splitlines() if line.startswith(("Max file size", "Max core"))
    ] == [["0", "0"]] * 2
    assert files.count("socket") == 1


def wanting(**said):
    call = {"id": 1, "name": "fs__read", "arguments": "{}", "line": 1, "column": 0}
    return {"at": "paused", "wanted": [call | said]}


@pytest.mark.invariant("what is asked for is a tool that was offered, under a number of its own, as JSON")
@pytest.mark.parametrize(
    "said",
    [
        wanting(name="evil"),
        wanting(id=0),
        wanting(arguments="[]"),
        wanting(arguments='{"a":NaN}'),
        wanting(arguments='{"a":' + "[" * 99 + "]" * 99 + "}"),
        {"at": "paused", "wanted": None},
        {"at": "ended"},
        {"at": "failed", "kind": "nice", "message": "", "line": 0},
        {"at": "sleeping", "milliseconds": "x"},
        {},
    ],
)
def test_a_worker_that_lies_is_not_believed(said):
    async def use(engine):
        session = await engine.open(TOOLS, LONG)

        class Liar:
            pid = 0

            async def ask(self, _head, _body=b""):
                return said, b""

            def end(self):
                return

        async def take():
            await engine.seats.take()
            return Liar()

        engine.take = take
        return await session.start("1")

    assert with_engine(use).kind == "crash"


def test_stubs_and_unknown_tools_make_no_difference():
    async def use(engine):
        session = await engine.open([Tool("a-b"), Tool("__proto__")], LONG, stubs="declare const x: number")
        return await session.start("Object.keys(codemode)")

    assert with_engine(use) == Ended(["__proto__", "a-b"])
