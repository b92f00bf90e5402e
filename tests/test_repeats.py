"""A verdict is repeated only while everything it was made from is the very same."""

import pytest

from checkrein.call import ToolCall
from checkrein.store import rules

CALL = {"tool": "echo", "server": "notes", "door": "gateway", "session": "s1"}


def call(project, **more):
    return ToolCall(**{**CALL, "project": project, "arguments": {"n": 1}, **more})


def add(pipeline, rule_id, body):
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, rule_id, body, pipeline.clock()))


@pytest.fixture
def allowed(pipeline):
    add(pipeline, "r1", {"action": "allow", "server": "notes", "pattern": "*", "priority": 10})
    return pipeline


def test_the_same_verdict_is_given_again(allowed, project):
    first = allowed.judge(call(project)).verdict
    assert allowed.judge(call(project, arguments={"n": 2})).verdict is first


def test_a_new_rule_counts_for_the_next_call(allowed, project):
    assert allowed.judge(call(project)).verdict.word == "allow"
    add(allowed, "r2", {"action": "deny", "server": "notes", "tool": "echo", "priority": 1})
    assert allowed.judge(call(project)).verdict.word == "deny"


def test_earned_trust_counts_for_the_next_call(allowed, project):
    first = allowed.judge(call(project)).verdict
    decided = allowed.decide(call(project))
    allowed.finish(decided.entry, "success")
    assert allowed.judge(call(project)).verdict is not first


@pytest.mark.parametrize(
    "extra",
    [
        {"when": {"n": {"equals": 2}}},
        {"expires_at": 4_000_000_000},
        {"uses": 3},
    ],
)
def test_rules_that_look_at_arguments_the_clock_or_a_count_are_asked_every_time(pipeline, project, extra):
    add(pipeline, "r3", {"action": "deny", "server": "notes", "tool": "echo", **extra})
    first = pipeline.judge(call(project)).verdict
    assert pipeline.judge(call(project)).verdict is not first


def test_an_argument_rule_decides_each_call_by_its_own_arguments(allowed, project):
    add(
        allowed,
        "r4",
        {
            "action": "deny",
            "server": "notes",
            "tool": "echo",
            "priority": 1,
            "when": {"n": {"equals": 2}},
        },
    )
    assert allowed.judge(call(project)).verdict.word == "allow"
    assert allowed.judge(call(project, arguments={"n": 2})).verdict.word == "deny"
    assert allowed.judge(call(project)).verdict.word == "allow"


def test_a_verdict_is_old_after_a_while(allowed, project, clock):
    first = allowed.judge(call(project)).verdict
    clock.now += 61
    assert allowed.judge(call(project)).verdict is not first


def test_another_session_with_another_past_is_another_call(allowed, project):
    allowed.judge(call(project))
    path = call(project, arguments={"path": "/etc/shadow"})
    assert allowed.judge(path).verdict.risk.category > allowed.judge(call(project)).verdict.risk.category
