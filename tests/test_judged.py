"""Which verdicts are one record and nothing else, and which wait for the disk."""

import pytest

from checkrein.call import ToolCall
from checkrein.judged import on_the_disk
from checkrein.store import rules


def judged(pipeline, project, tool, **rule):
    pipeline.note(
        "rule_changed",
        {},
        lambda tx: rules.add_rule(tx, "r1", {"server": "notes", "tool": tool, **rule}, pipeline.clock()),
    )
    return pipeline.judge(ToolCall(tool=tool, server="notes", door="gateway", project=project))


def test_a_plain_allow_is_one_record(pipeline, project):
    assert judged(pipeline, project, "read", action="allow").alone


@pytest.mark.parametrize("rule", [{"action": "ask"}, {"action": "deny"}, {"action": "allow", "uses": 2}])
def test_a_question_a_refusal_and_a_counted_yes_are_more(pipeline, project, rule):
    assert not judged(pipeline, project, "read", **rule).alone


def test_refusals_and_high_risks_wait_for_the_disk(pipeline, project):
    assert on_the_disk(judged(pipeline, project, "read", action="deny").verdict)


def test_a_high_risk_that_may_run_waits_for_the_disk(pipeline, project):
    found = judged(pipeline, project, "delete_everything", action="allow")
    assert found.verdict.word == "allow"
    assert on_the_disk(found.verdict)


def test_a_low_risk_that_may_run_does_not(pipeline, project):
    assert not on_the_disk(judged(pipeline, project, "read", action="allow").verdict)
