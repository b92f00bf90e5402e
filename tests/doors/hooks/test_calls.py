"""Which entry a later word belongs to: over real verdicts and a real ledger."""

import msgspec
import pytest

from checkrein.call import ToolCall
from checkrein.doors.hooks import calls as calls_module
from checkrein.doors.hooks.calls import Calls
from doors.hooks.agent import later, question
from patience import PATIENCE


@pytest.fixture
def calls(pipeline):
    return Calls(pipeline.store)


@pytest.fixture
def judge(pipeline, calls, project, clock):
    """Judges a call as the door does, and says that it was; the call and its verdict."""

    def decide(command="ls", call_id="", session="s", now=0.0, asking=False, **more):
        call = ToolCall(
            tool="Bash",
            arguments={"command": command},
            agent="gemini-cli",
            session=session,
            project=project,
            cwd=project,
            call_id=call_id,
            **more,
        )
        clock.now += 1
        decided = pipeline.decide(call, asking=asking)
        calls.opened(call, decided, now)
        return call, decided

    return decide


@pytest.mark.invariant("a verdict is repeated for exactly the same call only, whatever id a payload claims")
def test_a_verdict_just_given_is_repeated_for_exactly_the_same_call_only(calls, judge):
    call, decided = judge(call_id="t1", now=100.0)
    assert calls.heard(call, 105.0) == decided
    assert calls.heard(call, 111.0) is None
    for other in (
        {"arguments": {"command": "rm -rf ."}},
        {"cwd": "/"},
        {"project": "/"},
        {"tool": "Read"},
        {"server": "x"},
        {"session": "other"},
        {"agent": "codex"},
        {"user": "eve"},
        {"call_id": "t2"},
        {"call_id": ""},
    ):
        assert calls.heard(msgspec.structs.replace(call, **other), 101.0) is None, other


def test_calls_without_an_id_are_never_one_call_heard_twice(calls, judge):
    call, _ = judge(call_id="", now=1.0)
    assert calls.heard(call, 1.0) is None


def test_an_id_leads_to_its_entry_and_only_once(calls, judge):
    first, one = judge("ls", "t1")
    second, two = judge("ls", "t2")
    assert calls.ended(second) == two.entry
    assert calls.ended(first) == one.entry


def test_without_ids_the_oldest_unfinished_comes_first(calls, judge, pipeline):
    call, one = judge("ls")
    _, two = judge("ls")
    other, three = judge("pwd")
    assert calls.ended(call) == one.entry
    pipeline.finish(one.entry, "success")
    assert calls.ended(call) == two.entry
    assert calls.ended(other) == three.entry


@pytest.mark.invariant("the outcome of a call that ran is never laid to a refused one while there is another")
@pytest.mark.parametrize("restarted", [False, True])
def test_the_outcome_of_a_call_that_ran_is_never_laid_to_one_that_was_refused(
    calls, judge, pipeline, project, user_settings, restarted
):
    user_settings('[[rules]]\naction = "deny"\ntool = "Bash"')
    call, refused = judge("ls")
    assert refused.verdict.word == "deny"
    user_settings("")
    _, allowed = judge("ls")
    assert allowed.verdict.word == "allow"
    calls = Calls(pipeline.store) if restarted else calls
    assert calls.ended(call) == allowed.entry


@pytest.mark.invariant("the outcome of a call that ran is never laid to a refused one while there is another")
@pytest.mark.parametrize("restarted", [False, True])
def test_nor_to_one_a_person_refused(calls, judge, pipeline, restarted):
    call, first = judge("make x", asking=True)
    assert first.verdict.word == "ask"
    pipeline.answer(first.entry, "denied", actor="ada", channel="terminal")
    pipeline.clock.now += 301
    _, second = judge("make x", asking=True)
    calls = Calls(pipeline.store) if restarted else calls
    assert calls.ended(call) == second.entry


def test_a_refused_call_that_ran_all_the_same_is_told_on_its_own_entry(calls, judge):
    call, refused = judge("git push")
    assert refused.verdict.word == "deny"
    assert calls.ended(call) == refused.entry


@pytest.mark.parametrize("call_id", ["", "t1"])
def test_a_call_an_earlier_server_judged_is_found_in_the_ledger(judge, pipeline, call_id):
    call, decided = judge(call_id=call_id)
    fresh = Calls(pipeline.store)
    assert fresh.ended(call) == decided.entry
    assert fresh.ended(msgspec.structs.replace(call, session="other")) is None
    assert fresh.ended(msgspec.structs.replace(call, agent="codex")) is None


def test_a_call_nobody_judged_has_no_entry(calls, judge):
    call, _ = judge("ls", "t1")
    assert calls.ended(msgspec.structs.replace(call, call_id="t9")) is None
    assert calls.ended(ToolCall(tool="Bash", session="s", agent="gemini-cli")) is None


def test_a_repeated_report_finds_the_same_entry_again(calls, judge, pipeline):
    call, decided = judge("ls", "t1")
    calls.opened(call, decided, 1.0)
    assert calls.ended(call) == calls.ended(call) == decided.entry


def test_neither_many_calls_nor_large_ones_fill_the_memory(calls, judge, pipeline, monkeypatch):
    monkeypatch.setattr(calls_module, "_KEPT", 5)
    monkeypatch.setattr(calls_module, "_KEPT_ALIKE", 3)
    call, decided = judge("ls", "t0")
    for number in range(20):
        calls.opened(msgspec.structs.replace(call, call_id=f"t{number}"), decided, 1.0)
        calls.opened(msgspec.structs.replace(call, call_id=""), decided, 1.0)
    assert len(calls._open) == 5
    assert max(map(len, calls._open.values())) <= 3
    big = msgspec.structs.replace(call, call_id="big", arguments={"content": "x" * 100_000})
    calls.opened(big, decided, 1.0)
    assert "x" * 1_000 not in repr(calls._open)


def test_an_edited_call_without_an_id_is_known_by_what_ran(agent):
    def send(event, mode, command, **more):
        given = {"tool_name": "run_shell_command", "tool_input": {"command": command}}
        return agent.send(event, mode, agent="gemini-cli", **given, **more)

    with agent.pipeline.broker.attending():
        thread = later(lambda: send("BeforeTool", "gate", "make release"))
        edited = {"command": "make check"}
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", edited=edited
        )
        thread.join(PATIENCE)
    send("AfterTool", "tell", "make check", tool_response={"llmContent": "Output: x\nProcess Group PGID: 7"})
    assert "unjudged" not in agent.kinds()
    assert [each.result for each in agent.entries()] == ["success"]
