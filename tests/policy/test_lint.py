import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.call import ToolCall
from checkrein.policy.lint import lint
from checkrein.policy.rules import RuleSet, rule

NOW = 1_000.0


def findings(*raws):
    rules = RuleSet(rule({"action": "deny", **raw}, id=f"r{n}") for n, raw in enumerate(raws, start=1)).rules
    return [(found.rule, found.kind) for found in lint(rules, NOW)]


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        ({"tool": "Bash"}, []),
        ({"tool": "Bash", "action": "allow"}, []),
        ({"tool": "x", "expires_at": NOW}, ["never"]),
        ({"tool": "x", "expires_at": NOW + 1}, []),
        ({"tool": "x", "uses": 0}, ["never"]),
        ({"tool": "", "action": "allow"}, ["never"]),
        ({"tool": "x", "server": ""}, ["never"]),
        ({"tool": "x", "server": "ma*"}, ["literal"]),
        ({"tool": "*"}, ["literal"]),
        ({"tool": "rea?"}, ["literal"]),
        ({"pattern": "rea?_*"}, ["literal"]),
        ({"pattern": "*", "action": "allow"}, ["wide"]),
        ({"pattern": "a*b", "action": "allow"}, ["wide"]),
        ({"pattern": "mcp__*", "action": "allow"}, ["wide"]),
        ({"pattern": "read_*", "action": "allow"}, []),
        ({"pattern": "*", "action": "allow", "when": {"a": {"equals": 1}}}, []),
        ({"pattern": "*", "when": {"a": {"equals": 1}}}, ["wide"]),
        ({"pattern": "*", "when": {"a": {"equals": 1, "exists": True}}}, []),
        ({"pattern": "*"}, []),
    ],
)
def test_a_rule_alone(raw, kinds):
    assert findings(raw) == [("r1", kind) for kind in kinds]


WHEN = {"when": {"a": {"equals": 1}}}


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ({"tool": "x"}, {"tool": "x"}, "duplicate"),
        ({"tool": "x"}, {"tool": "x", "action": "ask"}, "shadowed"),
        ({"tool": "x"}, {"tool": "x", **WHEN}, "shadowed"),
        ({"tool": "x", **WHEN}, {"tool": "x", **WHEN}, "duplicate"),
        ({"tool": "x", **WHEN}, {"tool": "x"}, None),
        ({"pattern": "re*"}, {"pattern": "read*", "action": "ask"}, "shadowed"),
        ({"pattern": "re*"}, {"tool": "read", "server": "s", "action": "ask"}, "shadowed"),
        ({"pattern": "re*", "server": "s"}, {"tool": "read"}, None),
        ({"tool": "send", "server": "mail"}, {"tool": "mcp__mail__send"}, "duplicate"),
        ({"pattern": "*"}, {"pattern": "mcp__mail__*"}, "duplicate"),
        ({"pattern": "mcp__*"}, {"pattern": "mcp__mail__*"}, "duplicate"),
        ({"pattern": "m*"}, {"pattern": "mcp__mail__*"}, None),
        ({"tool": "x", "uses": 1}, {"tool": "x"}, None),
        ({"tool": "x", "expires_at": NOW + 1}, {"tool": "x"}, None),
    ],
)
def test_a_rule_against_an_earlier_one(first, second, kind):
    assert [found for rule_id, found in findings(first, second) if rule_id == "r2"] == (
        [kind] if kind else []
    )


NAMES = ["a", "b", "ab", "ba", "", "aab", "mcp__a__b", "m"]
NAMED = st.builds(lambda n: {"tool": n}, st.sampled_from(NAMES)) | st.builds(
    lambda p: {"pattern": p},
    st.sampled_from(["*", "a*", "*b", "a*b", "m*", "mcp__*", "mcp__a__*", "mcp__a*b", "*a*", "*__*", "ab"]),
)
RAW = st.builds(
    lambda named, server, action: {**named, "server": server, "action": action},
    NAMED,
    st.sampled_from([None, "a", "b"]),
    st.sampled_from(["allow", "deny"]),
)
CALLS = [ToolCall(tool=tool, server=server) for tool in NAMES[:6] for server in (None, "a", "b", "a__b")]


@settings(max_examples=examples(400))
@given(RAW, RAW)
def test_a_rule_called_shadowed_never_decides(first, second):
    rules = RuleSet([rule(first, id="r1"), rule(second, id="r2")])
    if any(
        found.rule == "r2" and found.kind in ("shadowed", "duplicate") for found in lint(rules.rules, NOW)
    ):
        deciding = {match.rule.id for call in CALLS if (match := rules.match(call, NOW))}
        assert "r2" not in deciding


@pytest.mark.parametrize(
    "test,wide",
    [
        ({"starts_with": "make "}, True),
        ({"contains": "make"}, True),
        ({"matches": "^make"}, True),
        ({"matches": "^make [a-z]+$"}, False),
        ({"equals": "make x"}, False),
    ],
)
def test_an_allow_that_says_nothing_about_the_end_of_a_line_is_wide(test, wide):
    made = rule({"action": "allow", "tool": "Bash", "when": [{"path": "command", **test}]}, id="r1")
    assert ("wide" in {finding.kind for finding in lint([made], 0.0)}) is wide
    deny = rule({"action": "deny", "tool": "Bash", "when": [{"path": "command", **test}]}, id="r2")
    assert lint([deny], 0.0) == []
