"""Which verdicts are one record and nothing else, which wait for the disk, and which are a person's word."""

import pytest

from checkrein.asking import PEOPLE
from checkrein.call import Category, Reason, Risk, ToolCall, Verdict
from checkrein.core.decision import DecisionRequest, is_persons_word, on_the_disk
from checkrein.store import rules
from checkrein.store.questions import Question


def evaluated(pipeline, project, tool, **rule):
    body = {"server": "notes", "tool": tool, **rule}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, "r1", body, pipeline.clock()))
    call = ToolCall(tool=tool, server="notes", door="gateway", project=project)
    return pipeline.evaluate(DecisionRequest(call))


def test_a_plain_allow_is_one_record(pipeline, project):
    found = evaluated(pipeline, project, "read", action="allow")
    assert found.judged.alone and found.plain and not found.durable


@pytest.mark.parametrize("rule", [{"action": "ask"}, {"action": "deny"}, {"action": "allow", "uses": 2}])
def test_a_question_a_refusal_and_a_counted_yes_are_more(pipeline, project, rule):
    found = evaluated(pipeline, project, "read", **rule)
    assert not found.judged.alone and not found.plain


def test_refusals_and_high_risks_wait_for_the_disk(pipeline, project):
    found = evaluated(pipeline, project, "read", action="deny")
    assert on_the_disk(found.verdict) and found.durable


def test_a_question_waits_for_the_disk(pipeline, project):
    found = evaluated(pipeline, project, "read", action="ask")
    assert found.durable and pipeline.add_question(found).durable


def test_a_high_risk_that_may_run_waits_for_the_disk(pipeline, project):
    found = evaluated(pipeline, project, "delete_everything", action="allow")
    assert found.verdict.word == "allow"
    assert on_the_disk(found.verdict) and found.durable and not found.plain


def test_a_low_risk_that_may_run_does_not(pipeline, project):
    assert not on_the_disk(evaluated(pipeline, project, "read", action="allow").verdict)


# -- a person's own word ---------------------------------------------------------------------------------

STAGES = {
    "rules": True,
    "profile": True,
    "grant": True,
    "release": True,
    "approval": True,
    "autonomy": False,
    "trust_gate": False,
    "unmatched": False,
    "hold": False,
    "floor": False,
    "phase": False,
    "settings": False,
    "record": False,
    "": False,
}


@pytest.mark.parametrize(("stage", "persons"), STAGES.items())
def test_a_persons_word_is_an_allow_by_what_a_person_wrote_or_said(stage, persons):
    def verdict(decision):
        risk = Risk(category=Category.low)
        return Verdict(decision=decision, stage=stage, risk=risk, reasons=(Reason("so"),))

    assert is_persons_word(verdict("auto_approved")) == persons
    assert not is_persons_word(verdict("human_required"))
    assert not is_persons_word(verdict("blocked"))


@pytest.mark.parametrize("state", ["approved", "denied", "answered", "expired", "cancelled", "asked"])
def test_an_answer_is_a_persons_word_where_a_person_said_yes(state):
    def asked(channel):
        return Question(
            entry="e",
            session="s",
            project="/p",
            binding="b",
            asked_at=0,
            expires_at=1,
            state=state,
            channel=channel,
        )

    assert {is_persons_word(asked(channel)) for channel in PEOPLE} == {state == "approved"}
    assert not any(is_persons_word(asked(channel)) for channel in ("timeout", "none", "machine", ""))


def test_what_policy_decides_is_told_apart(pipeline, project):
    earned = ToolCall(tool="Read", arguments={"file_path": f"{project}/a"}, project=project, cwd=project)
    found = pipeline.evaluate(DecisionRequest(earned)).verdict
    assert (found.word, found.stage, is_persons_word(found)) == ("allow", "autonomy", False)
    script = ToolCall(tool="read", server="notes", door="eval", project=project)
    found = pipeline.evaluate(DecisionRequest(script)).verdict
    assert (found.word, found.stage, is_persons_word(found)) == ("allow", "unmatched", False)
    released = ToolCall(tool="Bash", arguments={"command": "curl https://x.example/pay"}, project=project)
    found = pipeline.evaluate(DecisionRequest(released, released=True)).verdict
    assert (found.stage, is_persons_word(found)) == ("release", True)
    held = pipeline.evaluate(DecisionRequest(earned, ask_reason="three failures in a row")).verdict
    assert (held.stage, is_persons_word(held)) == ("hold", False)
    assert is_persons_word(evaluated(pipeline, project, "read", action="allow").verdict)
