"""Whether a call is held because its session has read untrusted words."""

import pytest

from checkrein.asking import Consent
from checkrein.call import Category, Effect, Reason, Risk, ToolCall, Verdict
from checkrein.core.decision import Judged
from checkrein.store.rules import add_rule
from checkrein.taint import why_held


def judged(pipeline, *, category=Category.low, kinds=(), rule=None, consent=None):
    risk = Risk(category=category, effects=tuple(Effect(kind) for kind in kinds))
    verdict = Verdict(decision="auto_approved", stage="rule", risk=risk, reasons=(Reason("x"),), rule=rule)
    force = pipeline.policies.of("default", "gateway")
    return Judged(verdict, force, pipeline.books.of("default", force.settings, ()), consent)


def call(**annotations):
    return ToolCall(tool="t", server="s", annotations=annotations, door="gateway")


@pytest.mark.parametrize(
    ("annotations", "risk", "held"),
    [
        ({}, {}, False),
        ({"readOnlyHint": True}, {}, False),
        ({"openWorldHint": True}, {}, True),
        ({"destructiveHint": True}, {}, True),
        ({"openWorldHint": False, "destructiveHint": "yes"}, {}, False),
        ({}, {"category": Category.high}, True),
        ({}, {"kinds": ("message",)}, True),
        ({}, {"kinds": ("network",)}, True),
        ({}, {"kinds": ("delete",)}, True),
        ({}, {"kinds": ("read",)}, False),
        ({"readOnlyHint": True}, {"category": Category.critical}, True),
    ],
)
def test_what_can_send_or_destroy_is_held(pipeline, annotations, risk, held):
    found = judged(pipeline, **risk)
    assert bool(why_held(call(**annotations), found, "web")) is held
    assert why_held(call(**annotations), found, "") == "", "nothing untrusted was read"


def test_a_yes_given_before_a_rule_for_exactly_this_tool_and_a_setting_let_it_pass(pipeline, user_settings):
    assert "`web`" in why_held(call(openWorldHint=True), judged(pipeline), "web")
    consent = Consent("grant", "g", "ada approved it")
    assert why_held(call(openWorldHint=True), judged(pipeline, consent=consent), "web") == ""
    for name, body, held in (
        ("r1", {"action": "allow", "tool": "t", "server": "s"}, False),
        ("r2", {"action": "allow", "tool": "t"}, True),
        ("r3", {"action": "allow", "pattern": "t", "server": "s"}, True),
    ):
        pipeline.store.write(lambda tx, name=name, body=body: add_rule(tx, name, body, 1.0))
        assert bool(why_held(call(openWorldHint=True), judged(pipeline, rule=name), "web")) is held, body
    user_settings('[gateway]\ntaint = "off"')
    assert why_held(call(openWorldHint=True), judged(pipeline), "web") == ""
