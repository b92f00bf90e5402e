"""What a program says of its tools, turned into a wish for one call."""

import asyncio

import pytest

from checkrein.authority.wish import Wish
from checkrein.call import Category
from checkrein.doors.library.wishes import Wishes, tool_rules
from checkrein.errors import RuleError


def fails(_given):
    raise LookupError("no such key")


def wish(tool="pick", server="garden", given=None, may_wait=False, **said):
    rules = tool_rules(said.pop("rules", ()))
    return Wishes(rules=rules, **said).of(server, tool, given or {}, may_wait=may_wait)


def test_nothing_said_is_no_wish():
    assert wish() == Wish()


def test_the_default_lets_or_mildly_holds():
    assert wish(default_auto_approve=True).let and wish(default_auto_approve=True).upto == Category.medium
    held = wish(default_auto_approve=False)
    assert held.hold and held.mild


def test_approval_is_needed_when_anybody_says_so():
    assert wish(needs=(True,)).hold and wish(needs=(False, True)).hold
    assert wish(needs=(lambda given: given["n"] > 5,), given={"n": 6}).hold
    assert wish(needs=(False,)).let and wish(needs=(lambda given: 0,)).let


def test_a_function_that_fails_asks():
    assert "no such key" in wish(needs=(fails,)).hold
    assert "could not be checked" in wish(rules=[{"autoApprove": False, "condition": fails}]).hold
    assert wish(rules=[{"autoApprove": True, "condition": fails}], default_auto_approve=True).hold


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"toolName": "pick"}, True),
        ({"tool_name": "other"}, False),
        ({"toolName": "pi*"}, True),
        ({"pattern": "p*k"}, True),
        ({"pattern": "x*"}, False),
        ({"serverId": "garden"}, True),
        ({"server_id": "shed"}, False),
        ({"toolName": "pick", "server": "garden"}, True),
        ({"toolName": "pick", "server": "shed"}, False),
        ({"toolName": "pick", "condition": lambda given: True}, True),
    ],
)
def test_rules_fit_by_name_pattern_server_and_condition(rule, fits):
    assert bool(wish(rules=[{**rule, "autoApprove": True}]).let) is fits
    assert bool(wish(rules=[{**rule, "auto_approve": False}]).hold) is fits


def test_the_first_rule_that_fits_decides():
    rules = [{"toolName": "pick", "autoApprove": True}, {"pattern": "*", "autoApprove": False}]
    assert wish(rules=rules).let and wish("drop", rules=rules).hold


def test_a_rule_that_names_the_tool_but_not_its_input_speaks_against_the_default():
    rules = [{"toolName": "pick", "autoApprove": True, "condition": lambda given: False}]
    assert wish(rules=rules, default_auto_approve=True).hold
    assert wish("drop", rules=rules, default_auto_approve=True).let


def test_only_a_rule_that_names_a_tool_reaches_high_risk():
    reach = lambda **rule: wish(rules=[{"autoApprove": True, **rule}]).upto  # noqa: E731
    assert reach(toolName="pick") == reach(pattern="pi*") == Category.high
    assert reach() == reach(pattern="*") == reach(serverId="garden") == Category.medium


def test_asynchronous_functions_are_waited_for_or_ask():
    async def dear(given):
        await asyncio.sleep(0)
        return given["n"] > 5

    async def failing(_given):
        raise LookupError("gone")

    found = asyncio.run(wish(needs=(dear,), given={"n": 6}, may_wait=True))
    assert found.hold
    rules = [{"toolName": "pick", "autoApprove": True, "condition": dear}]
    assert asyncio.run(wish(rules=rules, given={"n": 6}, may_wait=True)).let
    assert "gone" in asyncio.run(wish(needs=(failing,), may_wait=True)).hold
    assert "asynchronous" in wish(needs=(dear,), given={"n": 6}).hold


def test_a_rule_needs_to_say_what_it_means():
    with pytest.raises(RuleError, match="autoApprove"):
        tool_rules([{"toolName": "x", "autoApprove": "yes"}])
    with pytest.raises(RuleError, match="is text"):
        tool_rules([{"pattern": "", "autoApprove": True}])
