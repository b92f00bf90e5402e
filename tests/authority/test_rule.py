import pytest

from checkrein.errors import InputError, NotFoundError, RuleError
from checkrein.store.rules import all_rules, get_rule

RULE = {"action": "deny", "tool": "x"}


def test_a_rule_is_added_with_who_did_it(do, pipeline, recorded, asked):
    made = do("rule.add", rule={**RULE, "reason": "no"})
    assert get_rule(pipeline.store, made["id"]).body == {**RULE, "reason": "no"}
    assert recorded("rule_changed")[0]["actor"] == asked.actor


@pytest.mark.invariant("a rule that cannot mean anything is refused when it is written")
@pytest.mark.parametrize("body", [{}, {"action": "deny"}, {**RULE, "pattern": "y*"}, {**RULE, "surprise": 1}])
def test_a_rule_that_cannot_be_right_is_refused_here_too(do, pipeline, recorded, body):
    with pytest.raises(RuleError):
        do("rule.add", rule=body)
    assert all_rules(pipeline.store) == []
    assert recorded("rule_changed") == []


def test_an_edit_keeps_what_it_does_not_name(do, pipeline):
    made = do("rule.add", rule={**RULE, "reason": "no", "uses": 3})["id"]
    do("rule.edit", id=made, changes={"pattern": "y*", "action": "ask"}, clear=["reason"])
    found = get_rule(pipeline.store, made)
    assert found.body == {"action": "ask", "pattern": "y*"}
    assert found.uses == 3


def test_an_edit_that_cannot_be_right_leaves_the_rule_as_it_was(do, pipeline):
    made = do("rule.add", rule=RULE)["id"]
    with pytest.raises(RuleError, match="both"):
        do("rule.edit", id=made, changes={"tool": "a", "pattern": "b*"})
    with pytest.raises(InputError, match="cleared"):
        do("rule.edit", id=made, clear=["action"])
    with pytest.raises(NotFoundError):
        do("rule.edit", id="nobody", changes={"tool": "z"})
    assert get_rule(pipeline.store, made).body == RULE


def test_rules_are_ordered(do, pipeline):
    first, second, third = (do("rule.add", rule={**RULE, "tool": name})["id"] for name in "abc")

    def order():
        return [each.id for each in all_rules(pipeline.store)]

    do("rule.move", id=third, before=second)
    assert order() == [first, third, second]
    do("rule.move", id=first, after=second)
    assert order() == [third, second, first]
    do("rule.move", id=first, after=first)
    assert order() == [third, second, first]
    do("rule.move", id=first, priority=3)
    assert get_rule(pipeline.store, first).body["priority"] == 3
    for where in ({}, {"before": second, "priority": 1}):
        with pytest.raises(InputError, match="where"):
            do("rule.move", id=first, **where)
    with pytest.raises(NotFoundError):
        do("rule.move", id=first, before="nobody")


def test_a_rule_is_removed_once(do, pipeline):
    made = do("rule.add", rule=RULE)["id"]
    do("rule.remove", id=made)
    assert all_rules(pipeline.store) == []
    with pytest.raises(NotFoundError):
        do("rule.remove", id=made)
