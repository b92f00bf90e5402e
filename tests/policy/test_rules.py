import datetime
import math

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.call import ToolCall, split_name, tool_call
from checkrein.errors import RuleError
from checkrein.policy.patterns import pattern
from checkrein.policy.rules import DEFAULT_PRIORITY, RuleSet, rule

NOW = 1_000.0


def made(*raws):
    return RuleSet(rule(raw, id=f"r{number}") for number, raw in enumerate(raws, start=1))


def matched(rules, tool="Bash", now=NOW, **call):
    found = rules.match(tool_call({"tool": tool, **call}), now)
    return found and found.rule.id


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"action": "deny"},
        {"tool": "a", "pattern": "b", "action": "deny"},
        {"pattern": "", "action": "deny"},
        {"tool": "a"},
        {"tool": "a", "action": "DENY"},
        {"tool": "a", "action": ["deny"]},
        {"tool": 5, "action": "deny"},
        {"pattern": ["*"], "action": "deny"},
        {"tool": "a", "action": "deny", "server": 5},
        {"tool": "a", "action": "deny", "tol": "b"},
        {"tool": "a", "action": "deny", "priority": "1"},
        {"tool": "a", "action": "deny", "priority": 1.5},
        {"tool": "a", "action": "deny", "priority": True},
        {"tool": "a", "action": "deny", "priority": 1 << 60},
        {"tool": "a", "action": "deny", "uses": -1},
        {"tool": "a", "action": "deny", "uses": 1.0},
        {"tool": "a", "action": "deny", "expires_at": "tomorrow"},
        {"tool": "a", "action": "deny", "expires_at": True},
        {"tool": "a", "action": "deny", "expires_at": math.nan},
        {"tool": "a", "action": "deny", "expires_at": datetime.date(2027, 1, 1)},
        {"tool": "a", "action": "deny", "expires_at": datetime.time(1)},
        {"tool": "a", "action": "deny", "when": [{"path": "x"}]},
        {"tool": "a", "action": "deny", "when": {"x": {"gt": "5"}}},
        {"tool": "a", "action": "deny", "when": {"x": {"equals": datetime.date(2027, 1, 1)}}},
    ],
)
def test_a_rule_that_cannot_be_right_is_refused(raw):
    with pytest.raises(RuleError) as caught:
        rule(raw, id="x")
    assert caught.value.remedy


def test_a_typo_in_a_rule_is_answered_with_what_was_meant():
    with pytest.raises(RuleError, match="Did you mean `action`"):
        rule({"tool": "a", "acton": "deny"}, id="x")


def test_a_rule_has_sensible_defaults():
    plain = rule({"tool": "a", "action": "deny", "priority": None, "server": None}, id="x")
    assert (plain.id, plain.priority, plain.uses, plain.when) == ("x", DEFAULT_PRIORITY, None, ())
    assert rule({"id": "mine", "tool": "a", "action": "ask"}, id="x").id == "mine"
    assert plain.label == "deny a"
    assert rule({"pattern": "a*", "server": "s", "action": "ask"}, id="x").label == "ask a* on s"


@pytest.mark.parametrize(
    "moment",
    [
        0,
        0.0,
        "1970-01-01T00:00:00Z",
        "1970-01-01T02:00:00+02:00",
        datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    ],
)
def test_an_expiry_is_a_moment_in_any_spelling(moment):
    assert rule({"tool": "a", "action": "allow", "expires_at": moment}, id="x").expires_at == 0


def test_the_lowest_priority_decides_and_ties_keep_their_order():
    rules = made(
        {"tool": "Bash", "action": "deny", "priority": 2},
        {"tool": "Bash", "action": "allow", "priority": 1},
        {"pattern": "*", "action": "ask", "priority": 1},
    )
    assert matched(rules) == "r2"
    assert matched(made({"pattern": "*", "action": "ask"}, {"tool": "Bash", "action": "deny"})) == "r1"
    assert matched(rules, "Read") == "r3"


def test_expired_and_used_up_rules_are_passed_over():
    rules = made(
        {"tool": "Bash", "action": "allow", "priority": 1, "uses": 0},
        {"tool": "Bash", "action": "allow", "priority": 2, "expires_at": NOW},
        {"tool": "Bash", "action": "deny", "priority": 3, "uses": 1},
    )
    assert matched(rules) == "r3"
    assert matched(rules, now=NOW - 1) == "r2"


@pytest.mark.parametrize(
    ("raw", "yes", "no"),
    [
        ({"tool": "send"}, ["send", "mcp__mail__send", "mcp__x__send"], ["mcp__mail__sends", "Send"]),
        ({"tool": "send", "server": "mail"}, ["mcp__mail__send"], ["send", "mcp__x__send"]),
        ({"tool": "mcp__mail__send"}, ["mcp__mail__send"], ["send", "mcp__x__send", "mcp__mail__sen"]),
        ({"pattern": "mcp__mail__*"}, ["mcp__mail__send"], ["send", "mcp__x__send", "mail__send"]),
        ({"pattern": "mcp__*__send"}, ["mcp__mail__send", "mcp__x__send"], ["send", "mcp__x__sends"]),
        ({"pattern": "mcp__mail__send"}, ["mcp__mail__send"], ["send", "mcp__x__send"]),
        ({"pattern": "se*"}, ["send", "mcp__mail__send"], ["mcp__send__x"]),
        ({"pattern": "*", "server": "mail"}, ["mcp__mail__send"], ["send", "mcp__x__send"]),
        ({"pattern": "*", "server": ""}, [], ["send", "mcp__x__send"]),
        ({"pattern": "*"}, ["send", "mcp__x__send"], []),
        ({"tool": "*"}, ["*"], ["send"]),
        ({"pattern": "s?nd"}, ["s?nd"], ["send"]),
    ],
)
def test_a_rule_names_tools_and_servers(raw, yes, no):
    rules = made({**raw, "action": "deny"})
    assert [matched(rules, name) for name in yes] == ["r1"] * len(yes)
    assert [matched(rules, name) for name in no] == [None] * len(no)


@pytest.mark.invariant("no server has another one's tool allowed by giving its own tool that whole name")
@pytest.mark.parametrize(
    "raw", [{"tool": "mcp__mail__read"}, {"pattern": "mcp__mail__*"}, {"pattern": "mcp__m*read"}]
)
def test_no_server_has_a_tool_allowed_by_calling_it_as_another_servers(raw):
    foreign = ToolCall(tool="mcp__mail__read", server="evil", arguments={})
    own = ToolCall(tool="mcp__mail__read", server=None, arguments={})
    for action, expected in (("allow", None), ("ask", "r1"), ("deny", "r1")):
        rules = made({**raw, "action": action})
        assert matched(rules, "mcp__mail__read") == "r1"
        assert rules.match(own, NOW).rule.id == "r1"
        found = rules.match(foreign, NOW)
        assert (found and found.rule.id) == expected


WHEN = {"when": {"n": {"gt": 5}}}


@pytest.mark.invariant("a condition that cannot be tested makes deny and ask rules match, allow rules not")
@pytest.mark.parametrize("arguments", [{}, {"n": "6"}, {"n": math.nan}, {"n": None}])
def test_a_condition_that_cannot_be_tested_binds_deny_and_ask_but_not_allow(arguments):
    for action, expected in (("deny", "r1"), ("ask", "r1"), ("allow", None)):
        rules = made({"tool": "Bash", "action": action, **WHEN})
        assert matched(rules, arguments=arguments) == expected
    doubt = (
        made({"tool": "Bash", "action": "deny", **WHEN})
        .match(ToolCall(tool="Bash", arguments=arguments), NOW)
        .doubt
    )
    assert "`n`" in doubt


def test_all_conditions_of_a_rule_must_hold():
    rules = made(
        {"tool": "Bash", "action": "deny", "when": [{"path": "a", "gt": 1}, {"path": "b", "equals": "x"}]}
    )
    assert matched(rules, arguments={"a": 2, "b": "x"}) == "r1"
    assert matched(rules, arguments={"a": 2, "b": "y"}) is None
    assert matched(rules, arguments={"b": "y"}) is None
    assert matched(rules, arguments={"b": "x"}) == "r1"


# A linear reference: what the words say, with no index at all.
def naive(rules, call, now):
    for each in sorted(rules, key=lambda one: one.priority):
        alive = each.uses != 0 and (each.expires_at is None or now < each.expires_at)
        if alive and _names(each, call) and _holds(each, call):
            return each.id
    return None


def _names(each, call):
    if each.server is not None:
        wanted = each.tool == call.tool if each.tool is not None else pattern(each.pattern).matches(call.tool)
        return each.server == call.server and wanted
    # What allows a server's tool by its whole name allows no other server's tool that is called so.
    bare = each.action != "allow" or call.server is None
    if each.tool is not None:
        bare = bare or split_name(each.tool)[0] is None
        return (bare and call.tool == each.tool) or (
            call.server is not None and (call.server, call.tool) == split_name(each.tool)
        )
    full = each.pattern.split("*")[0].startswith("mcp__") and call.server is not None
    bare = bare or not full
    return (bare and pattern(each.pattern).matches(call.tool)) or (
        full and pattern(each.pattern).matches(call.name)
    )


def _holds(each, call):
    if not each.when:
        return True
    number = call.arguments.get("n")
    return number > 5 if isinstance(number, int) else each.action != "allow"


NAMES = st.sampled_from(["a", "ab", "a_b", "b", "mcp__a__b", "mcp__a__ab", "mcp__a", "mcp__", ""])
SERVERS = st.sampled_from([None, None, "a", "b", ""])
RAW = st.fixed_dictionaries(
    {"action": st.sampled_from(["allow", "ask", "deny"]), "server": SERVERS, "priority": st.integers(1, 3)},
    optional={
        "when": st.just({"n": {"gt": 5}}),
        "uses": st.integers(0, 1),
        "expires_at": st.sampled_from([NOW - 1, NOW, NOW + 1]),
    },
)
PATTERNS = st.sampled_from(
    ["*", "a*", "mcp__*", "mcp__a__*", "mcp__*b", "m*", "*b", "a*b", "mcp__a__b", "a", "*_*_*", "**"]
)
RULES = st.lists(
    st.builds(
        lambda raw, name: {**raw, **name},
        RAW,
        st.builds(lambda n: {"tool": n}, NAMES) | st.builds(lambda p: {"pattern": p}, PATTERNS),
    ),
    max_size=12,
)
CALLS = st.builds(
    ToolCall,
    tool=NAMES,
    server=SERVERS,
    arguments=st.sampled_from([{}, {"n": 9}, {"n": 1}, {"n": "x"}]),
)


@settings(max_examples=examples(1500))
@given(RULES, CALLS)
def test_the_index_agrees_with_a_linear_reading(raws, call):
    rules = made(*raws)
    found = rules.match(call, NOW)
    assert (found and found.rule.id) == naive(rules.rules, call, NOW)
    assert len(rules) == len(raws)
