import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import checkrein
from checkrein.errors import ConfigError, InputError, RuleError
from checkrein.whatif import explain, explain_line

READ = {"tool": "Read"}
BASH = {"tool": "Bash", "arguments": {"command": "make"}}
DENY = {"pattern": "*", "action": "deny"}


def line(**question):
    return json.loads(explain_line(json.dumps({"call": READ, **question})))


def test_an_answer_has_every_word_of_the_contract():
    answer = line()
    assert {"verdict", "decision", "stage", "rule", "risk", "trust", "autonomy", "reasons"} <= set(answer)
    assert (answer["verdict"], answer["decision"], answer["stage"]) == ("allow", "logged_only", "autonomy")
    assert answer["risk"] | {"effects": []} == {
        "category": "low",
        "domains": ["file_read"],
        "effects": [],
        "complexity": 0.5,
    }
    assert answer["trust"] == {"file_read": 0.3}
    assert answer["autonomy"] == pytest.approx(0.44)
    assert all(isinstance(reason, str) for reason in answer["reasons"])


def test_the_library_and_the_line_give_the_same_answer():
    question = {
        "policy": {"rules": [DENY], "phase": "planning"},
        "trust": {"*": 0.9},
        "risk": {"category": "high"},
    }
    assert checkrein.explain is explain
    assert json.loads(json.dumps(explain(READ, **question))) == line(**question)


@pytest.mark.parametrize(
    ("policy", "decision", "stage"),
    [
        ({}, "human_required", "trust_gate"),
        ({"phase": "building"}, "human_required", "trust_gate"),
        ({"phase": "planning"}, "blocked", "phase"),
        ({"phase": None}, "blocked", "phase"),
        ({"phase": ""}, "blocked", "phase"),
        ({"phase": "unknown"}, "blocked", "phase"),
        ({"phase": 5}, "blocked", "phase"),
        ({"unmatched": "earned"}, "human_required", "trust_gate"),
        ({"unmatched": "ask"}, "human_required", "unmatched"),
        ({"unmatched": "allow"}, "auto_approved", "unmatched"),
        ({"rules": [DENY]}, "blocked", "rules"),
        ({"rules": [{"tool": "Bash", "action": "allow"}, DENY]}, "auto_approved", "rules"),
        ({"rules": [{**DENY, "when": {"command": {"starts_with": "rm"}}}]}, "human_required", "trust_gate"),
        ({"profile": {"allow": ["Bash"]}}, "auto_approved", "profile"),
        ({"profile": {"allow": []}}, "blocked", "profile"),
        ({"profile": {"ask": ["B*"], "allow": ["*"]}}, "human_required", "profile"),
        ({"profile": None}, "human_required", "trust_gate"),
        ({"settings": {"phases": {"building": {"denied": ["shell_exec"]}}}}, "blocked", "phase"),
        ({"settings": {"autonomy": {"trust_gate_threshold": 0.2}}}, "human_required", "autonomy"),
    ],
)
def test_the_policy_is_the_one_given(policy, decision, stage):
    answer = line(call=BASH, policy=policy)
    assert (answer["decision"], answer["stage"]) == (decision, stage)


def test_the_deciding_rule_is_named_by_its_place_or_id():
    rules = [{"tool": "x", "action": "allow"}, {"tool": "Read", "action": "deny"}]
    assert line(policy={"rules": rules})["rule"] == "r2"
    assert line(policy={"rules": [{**DENY, "id": "mine"}]})["rule"] == "mine"


def test_given_risk_replaces_and_the_rest_stays():
    risk = line(risk={"category": "high", "complexity": 1})["risk"]
    assert (risk["category"], risk["complexity"], risk["domains"]) == ("high", 1.0, ["file_read"])
    assert line(risk={"domains": ["git_local", "package"]})["trust"] == {"git_local": 0.3, "package": 0.3}
    floor = line(
        risk={"category": "critical"}, trust={"*": 1}, policy={"rules": [{"tool": "Read", "action": "allow"}]}
    )
    assert (floor["decision"], floor["stage"]) == ("blocked", "floor")


def test_trust_is_the_domains_own_else_the_stars_else_the_initial_score():
    assert line(trust={"file_read": 0.9, "*": 0.1})["trust"] == {"file_read": 0.9}
    assert line(trust={"git_local": 0.9, "*": 0.1})["trust"] == {"file_read": 0.1}
    assert line(policy={"settings": {"trust": {"initial_score": 0.2}}})["trust"] == {"file_read": 0.2}


def test_the_call_takes_every_documented_word():
    call = {
        "tool": "mcp__mail__send",
        "arguments": {"to": "x"},
        "agent": "a",
        "project": "/p",
        "session": "s",
    }
    call |= {
        "door": "gateway",
        "annotations": {"readOnlyHint": True},
        "cwd": "/p",
        "history": [{"kind": "read"}],
    }
    assert line(call=call)["risk"]["domains"] == ["mcp:mail"]


ERRORS = [
    ({"call": {}}, "input.invalid"),
    ({"call": {"tool": 5}}, "input.invalid"),
    ({"call": {"tool": "x", "arguments": []}}, "input.invalid"),
    ({"call": None}, "input.invalid"),
    ({"extra": 1}, "input.invalid"),
    ({"policy": []}, "input.invalid"),
    ({"policy": {"rule": []}}, "input.invalid"),
    ({"policy": {"rules": {}}}, "input.invalid"),
    ({"policy": {"unmatched": "deny"}}, "input.invalid"),
    ({"policy": {"unmatched": []}}, "input.invalid"),
    ({"policy": {"rules": [5]}}, "rule.invalid"),
    ({"policy": {"rules": [{"action": "deny"}]}}, "rule.invalid"),
    ({"policy": {"rules": [{**DENY, "tool": "x"}]}}, "rule.invalid"),
    ({"policy": {"rules": [{**DENY, "pattern": ""}]}}, "rule.invalid"),
    ({"policy": {"rules": [{**DENY, "when": {"x": {"matches": "("}}}]}}, "rule.invalid"),
    ({"policy": {"rules": [{**DENY, "priority": 10**400}]}}, "rule.invalid"),
    ({"policy": {"settings": {"trust": {"initial_score": 0.6}}}}, "config.invalid"),
    ({"policy": {"settings": {"trust": {"score": 1}}}}, "config.invalid"),
    ({"policy": {"settings": {"approval": {"timeout_seconds": 10**400}}}}, "config.invalid"),
    ({"policy": {"settings": 5}}, "config.invalid"),
    ({"policy": {"profile": []}}, "config.invalid"),
    ({"policy": {"profile": {"allow": "x"}}}, "config.invalid"),
    ({"trust": {"*": 1.1}}, "input.invalid"),
    ({"trust": {"file_read": -0.1}}, "input.invalid"),
    ({"trust": {"x": "0.5"}}, "input.invalid"),
    ({"trust": {"x": True}}, "input.invalid"),
    ({"trust": {"x": 10**400}}, "input.invalid"),
    ({"trust": []}, "input.invalid"),
    ({"risk": {"category": "huge"}}, "input.invalid"),
    ({"risk": {"category": 4}}, "input.invalid"),
    ({"risk": {"category": []}}, "input.invalid"),
    ({"risk": {"effects": [5]}}, "input.invalid"),
    ({"call": {"tool": "x", "argument": {}}}, "input.invalid"),
    ({"risk": {"domains": []}}, "input.invalid"),
    ({"risk": {"domains": "file_read"}}, "input.invalid"),
    ({"risk": {"domains": [""]}}, "input.invalid"),
    ({"risk": {"complexity": 2}}, "input.invalid"),
    ({"risk": {"colour": 1}}, "input.invalid"),
]


@pytest.mark.parametrize(("question", "code"), ERRORS)
def test_what_is_wrong_with_a_line_is_its_answer(question, code):
    error = line(**question)["error"]
    assert error["code"] == code
    assert error["message"]


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"5", b"{", b"\xff", b'{"call":{"tool":"\xff"}}', b'{"call":{"tool":"\\ud800"}}']
    + [b"[" * 100_000, b'{"call":' * 50_000, b'{"call":{"tool":"x"},"trust":{"*":NaN}}', b"\0"]
    + ["\ud800"]
    + [b'{"call":{"tool":"x"},"policy":{"settings":' + b"[" * 900 + b"]" * 900 + b"}}"]
    + [b'{"call":{"tool":"x"},"trust":{"*":' + b"9" * 5000 + b"}}"],
)
def test_a_hostile_line_is_answered_with_an_error(text):
    assert json.loads(explain_line(text))["error"]["code"] in ("input.invalid", "config.invalid")


def test_a_line_may_be_text_or_bytes():
    assert explain_line('{"call":{"tool":"Read"}}') == explain_line(b'{"call":{"tool":"Read"}}')


def test_the_library_raises_what_the_line_reports():
    for error, question in (
        (InputError, {"call": {}}),
        (InputError, {"call": READ, "trust": {"*": math.nan}}),
        (RuleError, {"call": READ, "policy": {"rules": [{}]}}),
        (ConfigError, {"call": READ, "policy": {"settings": {"x": 1}}}),
    ):
        with pytest.raises(error):
            explain(**question)


WORDS = st.sampled_from(
    ["rules", "profile", "phase", "unmatched", "settings", "category", "domains", "complexity"]
    + ["tool", "pattern", "action", "when", "allow", "*", "x"]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(0, 2)
    | st.sampled_from(["", "deny", "low", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@given(JSON, JSON, JSON, JSON)
def test_no_question_goes_without_an_answer(call, policy, trust, risk):
    call = {"tool": "Read", **call} if isinstance(call, dict) else call
    text = json.dumps({"call": call, "policy": policy, "trust": trust, "risk": risk})
    answer = json.loads(explain_line(text))
    assert "error" in answer or answer["verdict"] in ("allow", "ask", "deny")


def test_a_question_leaves_nothing_behind(home):
    line(call=BASH, policy={"rules": [DENY]})
    assert list(home.iterdir()) == []


def test_given_effects_replace_the_classifier_s():
    effects = [{"kind": "delete", "scope": "project", "target": "build"}]
    assert explain({"tool": "Read"}, risk={"effects": effects})["risk"]["effects"] == effects


def test_a_policy_json_cannot_hold_is_refused():
    with pytest.raises(InputError, match="JSON"):
        explain({"tool": "Read"}, {"rules": [object()]})


def test_null_means_not_given():
    line = {"call": {"tool": "Read"}, "policy": None, "trust": None, "risk": None}
    assert json.loads(explain_line(json.dumps(line)))["verdict"] == "allow"
    policy = {"rules": None, "settings": None, "profile": {"allow": None, "deny": ["Read"]}}
    assert explain({"tool": "Read"}, policy)["stage"] == "profile"


def test_earlier_effects_may_be_given_in_short():
    call = {"tool": "Bash", "arguments": {"command": "git push"}}
    assert explain(call)["risk"]["category"] == "high"
    for history in (["read:secret:.env"], [{"kind": "read", "scope": "secret", "target": ".env"}]):
        assert explain({**call, "history": history})["risk"]["category"] == "critical"
