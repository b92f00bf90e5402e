"""The Claude Agent SDK: its callbacks with its own types, and the real Claude Code with a scripted model."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("claude_agent_sdk", reason="the Claude Agent SDK is not installed")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    create_sdk_mcp_server,
    query,
    tool,
)

from checkrein import Gate
from checkrein.doors.library.adapters.claude_agent import ANSWERED, WAITS, Approvals
from checkrein.errors import InputError
from checkrein.store.trust import trust_of
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.pages import page_of
from doors.library.behaviour import CASES, Heard, expected, project_for, seed_trust, write_settings
from doors.library.rooms import entries_of, recorded
from e2e.clients.claude import bash, turns, write
from e2e.clients.messages import Messages, text_of
from patience import PATIENCE

ALLOW_BASH = ['rules=[{action="allow",tool="Bash"}]']


def before(name, arguments, id="t1", **more):
    return {
        "hook_event_name": "PreToolUse",
        "session_id": "session",
        "transcript_path": "",
        "prompt_id": "prompt",
        "tool_name": name,
        "tool_input": arguments,
        "tool_use_id": id,
        **more,
    }


def after(id="t1", **more):
    return {"hook_event_name": "PostToolUse", "tool_use_id": id, "tool_response": "ok", **more}


def failed(id="t1", **more):
    return {"hook_event_name": "PostToolUseFailure", "tool_use_id": id, "error": "exit 3", **more}


async def judged(approvals, given):
    """What the hook says; a call at which the run stops is a `wait`."""
    said = await approvals.before(given, given["tool_use_id"], {"signal": None})
    decided = said["hookSpecificOutput"]
    if "continue_" not in said:
        return decided
    assert said["continue_"] is False and said["stopReason"] == decided["permissionDecisionReason"]
    assert decided["permissionDecision"] == "deny" and WAITS in said["stopReason"]
    return decided | {"permissionDecision": "wait"}


async def told(approvals, given):
    assert await approvals.after(given, given["tool_use_id"], {"signal": None}) == {}


def gate_in(folder, **options):
    return rooms.gate_in(folder, cwd=folder, **options)


# -- the behaviour suite ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_behaviour_suite(case, tmp_path):
    project = project_for(case, tmp_path)
    write_settings(case)

    async def main(gate):
        async with Approvals(gate) as approvals:
            said = await judged(approvals, before(case.tool, case.arguments, cwd=gate.cwd))
            if said["permissionDecision"] == "allow":
                await told(approvals, after())
        return {"wait": "ask"}.get(said["permissionDecision"], said["permissionDecision"])

    with Gate(tmp_path / "gate", project=project, phase=case.phase, asks="raise") as gate:
        seed_trust(case, gate.authority.pipeline.store, project)
        word = asyncio.run(main(gate))
        entry = recorded(gate.authority.pipeline.store)
        assert entry.door == "library" and entry.verdict == word
        assert Heard(word, entry.stage, word == "allow") == expected(case), entry.reasons


# -- the callbacks ------------------------------------------------------------------------------------------


def test_the_options_have_the_gate_in_them_and_failure_blocks():
    async def mine(_given, _id, _context):
        return {}

    async def prompt(_name, _given, _context):
        return PermissionResultDeny()

    with ScriptedGate() as gate:
        approvals = Approvals(gate, wait_seconds=60)
        made = approvals.options()
        (ours,) = made.hooks["PreToolUse"]
        assert (ours.matcher, ours.timeout, ours.on_failure) == (None, 60, "block")
        assert made.can_use_tool.func == approvals.can_use_tool
        theirs = HookMatcher(matcher="Bash", hooks=[mine])
        given = ClaudeAgentOptions(hooks={"PreToolUse": [theirs]}, can_use_tool=prompt, cwd="/")
        made = approvals.options(given)
        assert made.hooks["PreToolUse"][1] is theirs and made.can_use_tool is prompt and made.cwd == "/"
        assert given.hooks == {"PreToolUse": [theirs]}
        asks = ClaudeAgentOptions(permission_prompt_tool_name="mcp__x__ask")
        assert approvals.options(asks).can_use_tool is None


def test_outcomes_earn_and_cost_trust():
    async def main(gate):
        approvals = Approvals(gate)
        for call, outcome in (
            ("t1", after("t1")),
            ("t2", failed("t2")),
            ("t3", failed("t3", is_interrupt=True)),
        ):
            said = await judged(approvals, before("Bash", {"command": "ls"}, call))
            assert said == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
            await told(approvals, outcome)
        await told(approvals, after("t1"))
        await judged(approvals, before("Bash", {"command": "ls"}, "t4"))
        await approvals.close()

    with ScriptedGate(settings=ALLOW_BASH) as gate:
        asyncio.run(main(gate))
        assert gate.asked == []
        assert [each.result for each in gate.entries()] == ["success", "failure", "cancelled", "cancelled"]
        (earned,) = trust_of(gate.authority.pipeline.store, gate.project).values()
        assert (earned["successes"], earned["failures"]) == (1, 1)


def test_people_answer_one_by_one_while_calls_wait():
    async def main(gate):
        approvals = Approvals(gate)
        paths = [{"file_path": f"/tmp/{each}", "content": "x"} for each in "abc"]
        waits = [judged(approvals, before("Write", each, f"t{n}")) for n, each in enumerate(paths)]
        said = await asyncio.gather(*waits)
        await approvals.close()
        return {each["permissionDecision"]: each for each in said}

    answers = {"Write": [edit(content="y"), "no: not this one", "answer: it is there already"]}
    with ScriptedGate(answers) as gate:
        said = asyncio.run(main(gate))
        assert len(gate.asked) == 3
        assert said["allow"]["updatedInput"]["content"] == "y"
        assert sorted(each.answer for each in gate.entries()) == ["answered", "approved", "denied"]


def test_a_no_and_an_answer_reach_the_model_as_reasons():
    async def main(gate, id):
        said = await judged(Approvals(gate), before("Write", {"file_path": "/tmp/a", "content": id}, id))
        assert said["permissionDecision"] == "deny"
        return said["permissionDecisionReason"]

    with ScriptedGate({"Write": ["no: not this one", "answer: it is there already"]}) as gate:
        assert "not this one" in asyncio.run(main(gate, "t1"))
        assert asyncio.run(main(gate, "t2")) == f"{ANSWERED}it is there already"


def test_can_use_tool_lets_run_what_the_hook_let_run_and_judges_the_rest():
    async def main(gate):
        approvals = Approvals(gate)
        context = ToolPermissionContext(tool_use_id="t1")
        await judged(approvals, before("Write", {"file_path": "/tmp/a", "content": "x"}))
        edited = {"file_path": "/tmp/a", "content": "y"}
        allowed = await approvals.can_use_tool("Write", edited, context)
        assert allowed == PermissionResultAllow(updated_input=edited) and len(gate.asked) == 1
        # Other arguments than those the hook let run are another call.
        other = await approvals.can_use_tool("Write", edited | {"content": "z"}, context)
        assert isinstance(other, PermissionResultDeny) and "not z" in other.message
        plain = await approvals.can_use_tool(
            "Bash", {"command": "ls"}, ToolPermissionContext(tool_use_id="t2")
        )
        assert plain == PermissionResultAllow()
        await approvals.close()

    with ScriptedGate({"Write": [edit(content="y"), "no: not z"]}, settings=ALLOW_BASH) as gate:
        asyncio.run(main(gate))


def test_where_claude_code_stops_waiting_the_question_is_withdrawn(tmp_path):
    async def main(gate):
        approvals = Approvals(gate)
        asked = asyncio.create_task(
            judged(approvals, before("Write", {"file_path": "/tmp/a", "content": "x"}))
        )
        while not gate.pending():
            await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    with gate_in(tmp_path, asks="wait") as gate:
        asyncio.run(main(gate))
        assert [each.answer for each in entries_of(gate)] == ["cancelled"] and gate.pending() == []


def test_a_gate_that_fails_raises_which_blocks(monkeypatch):
    """The SDK makes an error of it, and the hook is registered so that Claude Code blocks on errors."""

    def broken(*_args, **_more):
        raise RuntimeError("no store")

    with ScriptedGate(settings=ALLOW_BASH) as gate:
        monkeypatch.setattr(gate.authority, "first", broken)
        with pytest.raises(RuntimeError):
            asyncio.run(judged(Approvals(gate), before("Bash", {"command": "ls"})))


# -- runs that stop ---------------------------------------------------------------------------------

WRITE = {"file_path": "/tmp/a", "content": "x"}


def test_an_ask_stops_the_run_and_goes_on_in_another_process_once(tmp_path):
    async def first(gate):
        approvals = Approvals(gate)
        assert (await judged(approvals, before("Write", WRITE, cwd="/tmp")))["permissionDecision"] == "wait"
        again = await judged(approvals, before("Write", WRITE, cwd="/tmp"))
        assert again["permissionDecision"] == "wait" and len(gate.pending()) == 1
        return approvals.keep()

    async def then(gate, kept):
        approvals = Approvals(gate)
        approvals.restore(kept)
        said = await judged(approvals, before("Write", WRITE, "t2", cwd="/tmp"))
        if said["permissionDecision"] == "allow":
            await told(approvals, after("t2"))
        return said

    with gate_in(tmp_path) as gate:
        kept = asyncio.run(first(gate))
        gate.answer(gate.pending()[0], "yes")
    with gate_in(tmp_path) as gate:
        assert asyncio.run(then(gate, kept))["permissionDecision"] == "allow"
        again = asyncio.run(then(gate, kept))
        assert again["permissionDecision"] == "deny" and "used before" in again["permissionDecisionReason"]
        assert entries_of(gate)[0].result == "success"


@pytest.mark.parametrize(
    "change",
    [
        {"tool_input": WRITE | {"content": "y"}},
        {"tool_name": "Edit"},
        {"cwd": "/"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_approval_binds_to_the_exact_call(change, tmp_path):
    async def main(gate):
        approvals = Approvals(gate)
        await judged(approvals, before("Write", WRITE, cwd="/tmp"))
        gate.answer(approvals.waiting[0], "yes")
        said = await judged(approvals, before("Write", WRITE, cwd="/tmp") | change)
        assert said["permissionDecision"] != "allow"

    with gate_in(tmp_path) as gate:
        asyncio.run(main(gate))


def test_a_kept_question_that_was_changed_blocks(tmp_path):
    async def main(gate):
        approvals = Approvals(gate)
        await judged(approvals, before("Write", WRITE, cwd="/tmp"))
        gate.answer(approvals.waiting[0], "yes")
        fresh = Approvals(gate)
        fresh.restore(approvals.keep().replace("/tmp/a", "/tmp/b"))
        with pytest.raises(InputError, match="no question about this call"):
            await judged(fresh, before("Write", WRITE | {"file_path": "/tmp/b"}, cwd="/tmp"))

    with gate_in(tmp_path) as gate:
        asyncio.run(main(gate))
        with pytest.raises(InputError):
            Approvals(gate).restore("{")


def test_calls_side_by_side_stop_the_run_together_and_are_answered_one_by_one(tmp_path):
    async def main(gate):
        approvals = Approvals(gate)
        calls = [WRITE | {"content": each} for each in "abc"]
        for number, each in enumerate(calls):
            assert (await judged(approvals, before("Write", each, f"t{number}")))[
                "permissionDecision"
            ] == "wait"
        for question, answer in zip(approvals.waiting, ("yes", "no: not b"), strict=False):
            gate.answer(question, answer)
        said = [await judged(approvals, before("Write", each, f"u{n}")) for n, each in enumerate(calls)]
        assert [each["permissionDecision"] for each in said] == ["allow", "deny", "wait"]
        assert "not b" in said[1]["permissionDecisionReason"] and len(approvals.waiting) == 1
        await told(approvals, after("u0"))
        # A yes is used once: made once more, the call is asked about once more.
        assert (await judged(approvals, before("Write", calls[0], "v")))["permissionDecision"] == "wait"

    with gate_in(tmp_path) as gate:
        asyncio.run(main(gate))


def test_can_use_tool_stops_the_run_too(tmp_path):
    async def main(gate):
        context = ToolPermissionContext(tool_use_id="t1")
        return await Approvals(gate).options().can_use_tool("Write", WRITE, context)

    with gate_in(tmp_path) as gate:
        said = asyncio.run(main(gate))
        assert said.interrupt and WAITS in said.message and len(gate.pending()) == 1


# -- the real Claude Code -----------------------------------------------------------------------------------

QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "CLAUDE_CODE_MAX_RETRIES",
)


def real_options(folder, url, **more):
    """Claude Code with a home of its own, no settings files, and a scripted model."""
    home, project = folder / "home", folder / "app"
    for each in (home / "tmp", project):
        each.mkdir(parents=True, exist_ok=True)
    env = {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "NO_PROXY": "127.0.0.1,localhost",
        "SHELL": "/bin/bash",
        **dict.fromkeys(QUIET, "1"),
    }
    return ClaudeAgentOptions(cwd=project, env=env, setting_sources=[], **more)


async def ran(approvals, options, prompt="MAIN go"):
    """The whole run; its last message."""
    found = None
    async for message in query(prompt=prompt, options=approvals.options(options)):
        found = message if isinstance(message, ResultMessage) else found
    return found


def heard(model):
    return [(bool(each.get("is_error")), text_of(each["content"])) for each in model.results().values()]


@pytest.mark.e2e
def test_real_calls_are_allowed_asked_refused_edited_and_reported(tmp_path):
    file = tmp_path / "app" / "a.txt"
    script = turns(
        [bash("echo hi"), bash("exit 3")], write(file, "x"), write(tmp_path / "app" / "b.txt", "x")
    )

    async def main(gate, model):
        async with Approvals(gate) as approvals:
            await ran(approvals, real_options(tmp_path, model.url))

    answers = {"Write": [edit(content="edited"), "no: not b"]}
    (tmp_path / "app").mkdir()
    with (
        ScriptedGate(answers, settings=ALLOW_BASH, project=tmp_path / "app") as gate,
        Messages(script) as model,
    ):
        asyncio.run(main(gate, model))
        assert file.read_text() == "edited" and not (tmp_path / "app" / "b.txt").exists()
        said = heard(model)
        assert said[0] == (False, "hi") and said[1][0] and said[3][0] and "not b" in said[3][1]
        assert [each.result for each in gate.entries()] == ["success", "failure", "success", "denied"]


@pytest.mark.e2e
def test_real_tools_of_the_program_are_gated_too(tmp_path):
    done = []

    @tool("book", "Book a room.", {"to": str})
    async def book(given):
        done.append(given["to"])
        return {"content": [{"type": "text", "text": f"booked {given['to']}"}]}

    rooms = create_sdk_mcp_server("rooms", tools=[book])
    calls = [{"name": "mcp__rooms__book", "input": {"to": each}} for each in ("ada", "eve")]

    async def main(gate, model):
        async with Approvals(gate) as approvals:
            await ran(approvals, real_options(tmp_path, model.url, mcp_servers={"rooms": rooms}))

    answers = {"mcp__rooms__book": lambda each: each["arguments"]["to"] == "ada"}
    with ScriptedGate(answers) as gate, Messages(turns(calls)) as model:
        asyncio.run(main(gate, model))
        assert done == ["ada"] and "booked ada" in str(heard(model))
        assert sorted(each.result for each in gate.entries()) == ["denied", "success"]


@pytest.mark.e2e
def test_a_real_hook_that_fails_blocks(tmp_path, monkeypatch):
    def broken(*_args, **_more):
        raise RuntimeError("no store")

    with ScriptedGate(settings=ALLOW_BASH) as gate, Messages(turns(bash("touch ran"))) as model:
        monkeypatch.setattr(gate.authority, "first", broken)
        asyncio.run(ran(Approvals(gate), real_options(tmp_path, model.url)))
        assert not (tmp_path / "app" / "ran").exists() and heard(model)[0][0]


@pytest.mark.e2e
def test_a_real_hook_that_takes_too_long_blocks(tmp_path):
    with gate_in(tmp_path, asks="wait") as gate, Messages(turns(bash("make x; touch ran"))) as model:
        asyncio.run(ran(Approvals(gate, wait_seconds=1), real_options(tmp_path, model.url)))
        assert not (tmp_path / "app" / "ran").exists() and heard(model)[0][0]
        assert gate.pending() == []


@pytest.mark.e2e
def test_the_pages_examples_run(tmp_path, user_settings, capsys):
    user_settings('[[rules]]\naction = "allow"\ntool = "Bash"\n')
    page, folder = page_of("library-claude-agent.md"), tmp_path / "app"

    def options(url):
        made = real_options(tmp_path, url)
        return {"env": made.env, "setting_sources": []}

    with Messages(turns(bash("touch one"))) as model:
        folder.mkdir()
        asyncio.run(page["work"]("MAIN go", folder, **options(model.url)))
        assert (folder / "one").exists()
    with Messages(turns(*[write(folder / "two", "x")] * 2)) as model:
        session, kept = asyncio.run(page["begin"]("MAIN go", folder, **options(model.url)))
        assert not (folder / "two").exists()
        asyncio.run(page["go_on"](session, kept, folder, **options(model.url)))
        assert (folder / "two").read_text() == "x"
    assert capsys.readouterr().out.count("done") == 2


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[4])
from checkrein import Gate
from checkrein.doors.library.adapters.claude_agent import GO_ON, Approvals
from doors.library.adapters.test_claude_agent import ran, real_options

folder, step, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

async def main():
    rules = ['rules=[{action="allow",tool="Bash"}]']
    with Gate(folder / "gate", project=folder / "app", session="s", asks="raise", settings=rules) as gate:
        async with Approvals(gate) as approvals:
            if step == "begin":
                result = await ran(approvals, real_options(folder, url))
                (folder / "kept").write_text(json.dumps([result.session_id, approvals.keep()]))
                return
            session, kept = json.loads((folder / "kept").read_text())
            approvals.restore(kept)
            if step == "answer":
                first, second = approvals.waiting
                gate.answer(first, "yes", edited={**first.call.arguments, "content": "edited"})
                gate.answer(second, "no: not b")
                return
            result = await ran(approvals, real_options(folder, url, resume=session), GO_ON)
            print(len(approvals.waiting))

asyncio.run(main())
"""


@pytest.mark.e2e
def test_a_real_run_stops_and_goes_on_in_another_process(tmp_path):
    program, file = tmp_path / "program.py", tmp_path / "app" / "a.txt"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    (tmp_path / "app").mkdir()
    paths = json.dumps([each for each in sys.path if each])

    def process(step, url):
        words = [sys.executable, program, tmp_path, step, url, paths]
        done = subprocess.run(words, check=False, text=True, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    first, second = write(file, "x"), write(tmp_path / "app" / "b.txt", "y")
    again = [first, second]
    script = turns([first, second, bash("echo hi")], again, again, {"text": "done"}, again)
    with Messages(script) as model:
        process("begin", model.url)
        assert not file.exists() and len(model.requests) == 1
        # Nobody has answered: it stops again.
        assert process("go on", model.url) == "2" and not file.exists()
        process("answer", model.url)
        assert process("go on", model.url) == "0" and file.read_text() == "edited"
        file.unlink()
        # The same answers once more.
        assert process("go on", model.url) == "0"
        said = heard(model)
        assert (False, "hi") in said and sum("not b" in text for _, text in said) >= 1
        assert any("Checkrein refused this call" in text for _, text in said)
        assert not file.exists() and not (tmp_path / "app" / "b.txt").exists()
