"""The shared vectors: trust, decisions and rules, through the same door a script would use."""

import json

import pytest
from ground import vectors

from checkrein.call import Category, tool_call
from checkrein.classify import classify
from checkrein.errors import ConfigError, RuleError
from checkrein.policy.autonomy import decision_for
from checkrein.policy.replay import replay
from checkrein.policy.trustfile import render
from checkrein.settings import Autonomy, Settings
from checkrein.settings.check import apply
from checkrein.whatif import explain, explain_line

ACTION = {"auto_approve": "allow", "require_approval": "ask", "deny": "deny", "invalid_rule": "invalid_rule"}
# Defended in docs/differences.md.
REFUSED_WHEN_WRITTEN = {"v135"}
STRICTER_PHASE = {"D-phase-planning-_global", "D-phase-auditing-_global"}

TRUST = [row for row in vectors("trust.jsonl") if "config" in row]
FULL = [row for row in vectors("decision.jsonl") if row["kind"] == "full"]
CONFIG = [row for row in vectors("decision.jsonl") if row["kind"] == "config"]
THRESHOLD = [row for row in vectors("decision.jsonl") if row["kind"] == "threshold"]
CALL = [row for row in vectors("decision.jsonl") if row["kind"] == "call"]
RISK = vectors("risk.jsonl")
RULES = vectors("rules.jsonl")[1:]


def ids(rows):
    return [row["id"] for row in rows]


@pytest.mark.parametrize("row", TRUST, ids=ids(TRUST))
def test_trust(row):
    final = replay({key: row[key] for key in ("config", "start", "events")})
    expected = row["expected_final"]
    assert final["score"] == pytest.approx(expected.pop("score"), abs=row["tolerance"])
    assert {key: final[key] for key in expected} == expected


def test_trust_without_a_file():
    row = next(row for row in vectors("trust.jsonl") if row["id"] == "T-missing-file")
    fresh = render({}, Settings().trust.initial_score, 0.0)
    assert fresh["version"] == row["expected"]["version"]
    assert fresh["domains"]["_global"]["score"] == row["expected"]["domains"]["_global"]["score"]


@pytest.mark.parametrize("row", FULL, ids=ids(FULL))
def test_decision(row):
    risk = {"category": row["risk"], "domains": [row["domain"]], "complexity": row["complexity"]}
    answer = explain({"tool": "x"}, {"phase": row["phase"]}, {"*": row["trust"]}, risk)
    if row["id"] in STRICTER_PHASE:
        assert not row["hard"]
        assert answer["decision"] == "blocked"
        return
    assert answer["decision"] == row["expected"]
    if "expected_autonomy" in row:
        assert answer["autonomy"] == pytest.approx(row["expected_autonomy"], abs=1e-9)


@pytest.mark.parametrize("row", THRESHOLD, ids=ids(THRESHOLD))
def test_threshold(row):
    assert Category[row["risk"]] is Category.low
    assert decision_for(row["autonomy"], Autonomy()) == row["expected"]


@pytest.mark.parametrize("row", CONFIG, ids=ids(CONFIG))
def test_config(row):
    if row["expected"] == "accept_defaults":
        assert apply(Settings(), row["settings"]) == Settings()
    else:
        with pytest.raises(ConfigError):
            apply(Settings(), row["settings"])


@pytest.mark.parametrize("row", CALL, ids=ids(CALL))
def test_call(row):
    call = {"tool": row["tool"], "arguments": row["input"], "project": "/home/ada/shop"}
    answer = explain(call, {"phase": row["phase"]}, {"*": row["trust_all_domains"]})
    if row["expected"] == "not_blocked":
        assert answer["decision"] != "blocked"
    else:
        assert answer["decision"] == row["expected"]


@pytest.mark.parametrize("row", RISK, ids=ids(RISK))
def test_risk(row):
    risk = classify(tool_call({"tool": row["tool"], "arguments": row["input"]}))
    wanted = Category[row["expected_risk"]]
    held = {
        "exact": risk.category == wanted,
        "at_least": risk.category >= wanted,
        "at_most": risk.category <= wanted,
    }
    assert held[row["risk_match"]]
    if row["domain_match"] == "exact":
        assert risk.domains == (row["expected_domain"],)
    elif row["domain_match"].startswith("not:"):
        assert not set(row["domain_match"][4:].split("|")) & set(risk.domains)


def as_rules(row):
    """The vector's rules in our words; a rule that names nothing is imported as the pattern `*`."""
    sign = -1 if row.get("order") == "desc" else 1
    for rule in row["rules"]:
        everything = (
            rule["tool_name"] is None and rule["tool_pattern"] is None and row.get("xor") != "neither"
        )
        yield {
            "id": rule["id"],
            "priority": rule["priority"] * sign,
            "server": rule["server_id"],
            "tool": rule["tool_name"],
            "pattern": "*" if everything else rule["tool_pattern"],
            "action": ACTION[rule["action"]],
        }


@pytest.mark.parametrize("row", RULES, ids=ids(RULES))
def test_rules(row):
    call, policy = (
        {"server": row["server"], "tool": row["tool"]},
        {"rules": list(as_rules(row)), "unmatched": "ask"},
    )
    risk = {"category": "medium", "domains": ["file_read"]}
    if row["expected"] == "invalid_rule" or row["id"] in REFUSED_WHEN_WRITTEN:
        with pytest.raises(RuleError):
            explain(call, policy, risk=risk)
        line = json.dumps({"call": call, "policy": policy, "risk": risk})
        assert json.loads(explain_line(line))["error"]["code"] == "rule.invalid"
        return
    answer = explain(call, policy, risk=risk)
    assert (answer["verdict"], answer["rule"]) == (ACTION[row["expected"]], row["matched_rule"])
