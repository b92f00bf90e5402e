"""Which verdicts are one record and nothing else, and which wait for the disk."""

import pytest

from checkrein.call import ToolCall
from checkrein.core.decision import DecisionRequest, on_the_disk
from checkrein.store import rules


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
