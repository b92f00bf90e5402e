"""The Claude Agent SDK: its callbacks with its own types."""

import asyncio

import pytest

from checkrein import Gate
from checkrein.errors import InputError
from checkrein.store.trust import trust_of
from checkrein.testing import ScriptedGate, edit
from doors.library.adapters.lazily import Lazily
from doors.library.behaviour import PATHS, Heard, expected, project_for, seed_trust, write_settings
from doors.library.rooms import entries_of, recorded
from patience import soon

sdk = Lazily("doors.library.adapters.claude_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("claude_agent_sdk", reason="The Claude Agent SDK is not installed: UNTESTED")


# -- the behaviour suite ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_behaviour_suite(case, tmp_path):
    project = project_for(case, tmp_path)
    write_settings(case)

    async def main(gate):
        async with sdk.Approvals(gate) as approvals:
            said = await sdk.judged(approvals, sdk.before(case.tool, case.arguments, cwd=gate.cwd))
            if said["permissionDecision"] == "allow":
                await sdk.told(approvals, sdk.after())
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
        return sdk.PermissionResultDeny()

    with ScriptedGate() as gate:
        approvals = sdk.Approvals(gate, wait_seconds=60)
        made = approvals.options()
        (ours,) = made.hooks["PreToolUse"]
        assert (ours.matcher, ours.timeout, ours.on_failure) == (None, 60, "block")
        assert made.can_use_tool.func == approvals.can_use_tool
        theirs = sdk.HookMatcher(matcher="Bash", hooks=[mine])
        given = sdk.ClaudeAgentOptions(hooks={"PreToolUse": [theirs]}, can_use_tool=prompt, cwd="/")
        made = approvals.options(given)
        assert made.hooks["PreToolUse"][1] is theirs and made.can_use_tool is prompt and made.cwd == "/"
        assert given.hooks == {"PreToolUse": [theirs]}
        asks = sdk.ClaudeAgentOptions(permission_prompt_tool_name="mcp__x__ask")
        assert approvals.options(asks).can_use_tool is None


def test_outcomes_earn_and_cost_trust():
    async def main(gate):
        approvals = sdk.Approvals(gate)
        for call, outcome in (
            ("t1", sdk.after("t1")),
            ("t2", sdk.failed("t2")),
            ("t3", sdk.failed("t3", is_interrupt=True)),
        ):
            said = await sdk.judged(approvals, sdk.before("Bash", {"command": "ls"}, call))
            assert said == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
            await sdk.told(approvals, outcome)
        await sdk.told(approvals, sdk.after("t1"))
        await sdk.judged(approvals, sdk.before("Bash", {"command": "ls"}, "t4"))
        await approvals.close()

    with ScriptedGate(settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))
        assert gate.asked == []
        assert [each.result for each in gate.entries()] == ["success", "failure", "cancelled", "cancelled"]
        (earned,) = trust_of(gate.authority.pipeline.store, gate.project).values()
        assert (earned["successes"], earned["failures"]) == (1, 1)


def test_people_answer_one_by_one_while_calls_wait():
    async def main(gate):
        approvals = sdk.Approvals(gate)
        paths = [{"file_path": f"/tmp/{each}", "content": "x"} for each in "abc"]
        waits = [sdk.judged(approvals, sdk.before("Write", each, f"t{n}")) for n, each in enumerate(paths)]
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
        said = await sdk.judged(
            sdk.Approvals(gate), sdk.before("Write", {"file_path": "/tmp/a", "content": id}, id)
        )
        assert said["permissionDecision"] == "deny"
        return said["permissionDecisionReason"]

    with ScriptedGate({"Write": ["no: not this one", "answer: it is there already"]}) as gate:
        assert "not this one" in asyncio.run(main(gate, "t1"))
        assert asyncio.run(main(gate, "t2")) == f"{sdk.ANSWERED}it is there already"


def test_can_use_tool_lets_run_what_the_hook_let_run_and_judges_the_rest():
    async def main(gate):
        approvals = sdk.Approvals(gate)
        context = sdk.ToolPermissionContext(tool_use_id="t1")
        await sdk.judged(approvals, sdk.before("Write", {"file_path": "/tmp/a", "content": "x"}))
        edited = {"file_path": "/tmp/a", "content": "y"}
        allowed = await approvals.can_use_tool("Write", edited, context)
        assert allowed == sdk.PermissionResultAllow(updated_input=edited) and len(gate.asked) == 1
        # Other arguments than those the hook let run are another call.
        other = await approvals.can_use_tool("Write", edited | {"content": "z"}, context)
        assert isinstance(other, sdk.PermissionResultDeny) and "not z" in other.message
        plain = await approvals.can_use_tool(
            "Bash", {"command": "ls"}, sdk.ToolPermissionContext(tool_use_id="t2")
        )
        assert plain == sdk.PermissionResultAllow()
        await approvals.close()

    with ScriptedGate({"Write": [edit(content="y"), "no: not z"]}, settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))


def test_where_claude_code_stops_waiting_the_question_is_withdrawn(tmp_path):
    async def main(gate):
        approvals = sdk.Approvals(gate)
        asked = asyncio.create_task(
            sdk.judged(approvals, sdk.before("Write", {"file_path": "/tmp/a", "content": "x"}))
        )
        await soon(gate.pending)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    with sdk.gate_in(tmp_path, asks="wait") as gate:
        asyncio.run(main(gate))
        assert [each.answer for each in entries_of(gate)] == ["cancelled"] and gate.pending() == []


def test_a_gate_that_fails_raises_which_blocks(monkeypatch):
    """The SDK makes an error of it, and the hook is registered so that Claude Code blocks on errors."""

    def broken(*_args, **_more):
        raise RuntimeError("no store")

    with ScriptedGate(settings=sdk.ALLOW_BASH) as gate:
        monkeypatch.setattr(gate.authority, "first", broken)
        with pytest.raises(RuntimeError):
            asyncio.run(sdk.judged(sdk.Approvals(gate), sdk.before("Bash", {"command": "ls"})))


# -- runs that stop ---------------------------------------------------------------------------------


WRITE = {"file_path": "/tmp/a", "content": "x"}


def test_an_ask_stops_the_run_and_goes_on_in_another_process_once(tmp_path):
    async def first(gate):
        approvals = sdk.Approvals(gate)
        assert (await sdk.judged(approvals, sdk.before("Write", WRITE, cwd="/tmp")))[
            "permissionDecision"
        ] == "wait"
        again = await sdk.judged(approvals, sdk.before("Write", WRITE, cwd="/tmp"))
        assert again["permissionDecision"] == "wait" and len(gate.pending()) == 1
        return approvals.keep()

    async def then(gate, kept):
        approvals = sdk.Approvals(gate)
        approvals.restore(kept)
        said = await sdk.judged(approvals, sdk.before("Write", WRITE, "t2", cwd="/tmp"))
        if said["permissionDecision"] == "allow":
            await sdk.told(approvals, sdk.after("t2"))
        return said

    with sdk.gate_in(tmp_path) as gate:
        kept = asyncio.run(first(gate))
        gate.answer(gate.pending()[0], "yes")
    with sdk.gate_in(tmp_path) as gate:
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
        approvals = sdk.Approvals(gate)
        await sdk.judged(approvals, sdk.before("Write", WRITE, cwd="/tmp"))
        gate.answer(approvals.waiting[0], "yes")
        said = await sdk.judged(approvals, sdk.before("Write", WRITE, cwd="/tmp") | change)
        assert said["permissionDecision"] != "allow"

    with sdk.gate_in(tmp_path) as gate:
        asyncio.run(main(gate))


def test_a_kept_question_that_was_changed_blocks(tmp_path):
    async def main(gate):
        approvals = sdk.Approvals(gate)
        await sdk.judged(approvals, sdk.before("Write", WRITE, cwd="/tmp"))
        gate.answer(approvals.waiting[0], "yes")
        fresh = sdk.Approvals(gate)
        fresh.restore(approvals.keep().replace("/tmp/a", "/tmp/b"))
        with pytest.raises(InputError, match="no question about this call"):
            await sdk.judged(fresh, sdk.before("Write", WRITE | {"file_path": "/tmp/b"}, cwd="/tmp"))

    with sdk.gate_in(tmp_path) as gate:
        asyncio.run(main(gate))
        with pytest.raises(InputError):
            sdk.Approvals(gate).restore("{")


def test_calls_side_by_side_stop_the_run_together_and_are_answered_one_by_one(tmp_path):
    async def main(gate):
        approvals = sdk.Approvals(gate)
        calls = [WRITE | {"content": each} for each in "abc"]
        for number, each in enumerate(calls):
            assert (await sdk.judged(approvals, sdk.before("Write", each, f"t{number}")))[
                "permissionDecision"
            ] == "wait"
        for question, answer in zip(approvals.waiting, ("yes", "no: not b"), strict=False):
            gate.answer(question, answer)
        said = [
            await sdk.judged(approvals, sdk.before("Write", each, f"u{n}")) for n, each in enumerate(calls)
        ]
        assert [each["permissionDecision"] for each in said] == ["allow", "deny", "wait"]
        assert "not b" in said[1]["permissionDecisionReason"] and len(approvals.waiting) == 1
        await sdk.told(approvals, sdk.after("u0"))
        # A yes is used once: made once more, the call is asked about once more.
        assert (await sdk.judged(approvals, sdk.before("Write", calls[0], "v")))[
            "permissionDecision"
        ] == "wait"

    with sdk.gate_in(tmp_path) as gate:
        asyncio.run(main(gate))


def test_can_use_tool_stops_the_run_too(tmp_path):
    async def main(gate):
        context = sdk.ToolPermissionContext(tool_use_id="t1")
        return await sdk.Approvals(gate).options().can_use_tool("Write", WRITE, context)

    with sdk.gate_in(tmp_path) as gate:
        said = asyncio.run(main(gate))
        assert said.interrupt and sdk.WAITS in said.message and len(gate.pending()) == 1
