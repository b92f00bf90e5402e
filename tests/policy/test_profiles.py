import pytest

from checkrein.call import ToolCall
from checkrein.policy.profiles import judge, profile
from checkrein.settings import Settings
from checkrein.settings.check import apply


def word(profiles, tool, server=None, name="p"):
    made = profile(name, apply(Settings(), {"profiles": profiles}).profiles)
    said = judge(made, ToolCall(tool=tool, server=server))
    return said and said[0]


@pytest.mark.parametrize(
    ("lists", "tool", "expected"),
    [
        ({}, "x", None),
        ({"deny": ["x"]}, "x", "deny"),
        ({"deny": ["x"]}, "y", None),
        ({"ask": ["x"], "allow": ["x"]}, "x", "ask"),
        ({"deny": ["x"], "ask": ["*"], "allow": ["x"]}, "x", "deny"),
        ({"allow": ["x"]}, "x", "allow"),
        ({"allow": ["x"]}, "y", "deny"),
        ({"allow": []}, "x", "deny"),
        ({"allow": ["x"], "ask": ["y"]}, "y", "ask"),
        ({"allow": ["X"]}, "x", "deny"),
    ],
)
def test_deny_outranks_ask_outranks_allow(lists, tool, expected):
    assert word({"p": lists}, tool) == expected


def test_names_are_server_and_tool():
    lists = {"p": {"deny": ["mail__*"]}}
    assert word(lists, "send", "mail") == "deny"
    assert word(lists, "send", "other") is None
    assert word(lists, "send") is None
    assert word({"p": {"deny": ["mcp__mail__send"]}}, "send", "mail") is None


def test_extending_adds_denials_and_questions_and_narrows_what_is_allowed():
    profiles = {
        "p": {"extends": ["q", "r"], "allow": ["a*", "x"], "deny": ["a9"]},
        "q": {"allow": ["*1", "x"], "ask": ["a01"]},
        "r": {"extends": "s"},
        "s": {"deny": ["a21"]},
    }
    words = {
        "a1": "allow",
        "a01": "ask",
        "a21": "deny",
        "a9": "deny",
        "a2": "deny",
        "b1": "deny",
        "x": "allow",
    }
    assert {tool: word(profiles, tool) for tool in words} == words
    assert word({"p": {"extends": "q"}, "q": {"allow": []}}, "x") == "deny"


@pytest.mark.parametrize(
    ("own", "parent", "expected"),
    [
        ("allow", "allow", "allow"),
        ("allow", "deny", "deny"),
        ("deny", "allow", "deny"),
        ("deny", "deny", "deny"),
    ],
)
def test_an_unanswered_question_runs_only_if_every_ancestor_says_so(own, parent, expected):
    raw = {"p": {"extends": "q", "fallback": own}, "q": {"fallback": parent}}
    assert profile("p", apply(Settings(), {"profiles": raw}).profiles).fallback == expected


def test_profiles_that_meet_again_and_again_are_folded_once():
    """Each path to every profile walked by itself would not come to an end."""
    raw = {f"p{n}": {"extends": [f"p{n + 1}"] * 2, "deny": [f"x{n}"]} for n in range(2000)} | {"p2000": {}}
    assert len(profile("p0", apply(Settings(), {"profiles": raw}).profiles).deny) == 2000
