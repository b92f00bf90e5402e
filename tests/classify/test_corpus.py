"""The shared vectors and corpora, read from CHECKREIN_DATA (never committed: third-party data)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify

FOLDER = Path(os.environ.get("CHECKREIN_DATA", "/nonexistent"))
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="set CHECKREIN_DATA to the folder with the shared corpora"
)
GATED = {"shell_exec", "git_local", "git_remote"}


def rows(name):
    path = FOLDER / name
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    )


def judge(tool, arguments):
    return classify(tool_call({"tool": tool, "arguments": arguments}))


def allowed(risk):
    return risk.category is Category.low and risk.complexity <= 0.64 and not GATED & set(risk.domains)


@pytest.mark.parametrize("row", rows("risk.jsonl"), ids=lambda row: row["id"])
def test_risk_vectors(row):
    risk = judge(row["tool"], row["input"])
    wanted = Category[row["expected_risk"]]
    match row["risk_match"]:
        case "exact":
            assert risk.category is wanted
        case "at_least":
            assert risk.category >= wanted
        case _:
            assert risk.category <= wanted
    if row["domain_match"] == "exact":
        assert risk.domains == (row["expected_domain"],)
    elif row["domain_match"].startswith("not:"):
        assert not set(row["domain_match"][4:].split("|")) & set(risk.domains)


@pytest.mark.parametrize(
    "row", [r for r in rows("decision.jsonl") if r.get("kind") == "call"], ids=lambda row: row["id"]
)
def test_decision_vectors_for_calls(row):
    """The phase tables of the seed, applied to the domains we find."""
    risk = judge(row["tool"], row["input"])
    found = set(risk.domains)
    writes = {"file_write", "file_write_src", "docs_write"}
    denied = {
        "planning": {"file_write_src", "shell_exec", "git_remote"},
        "building": {"git_remote"},
        "auditing": writes | {"shell_exec", "git_local", "git_remote"},
    }[row["phase"]]
    blocked = bool(found & denied) or risk.category is Category.critical
    assert blocked == (row["expected"] == "blocked")
    if row["expected"] == "human_required":
        assert found & {"shell_exec", "git_local"}


@pytest.mark.parametrize(
    ("label", "limit"),
    [("deny", 0.01), ("ask", 0.03)],
    ids=["attacks are not allowed", "what must ask is not allowed"],
)
def test_dangerous_lines_are_rarely_allowed(label, limit):
    lines = [row["command"] for row in rows("shell_commands.jsonl") if row["expected"] == label]
    through = [line for line in lines if allowed(judge("Bash", {"command": line}))]
    assert len(through) <= limit * len(lines)


def test_real_sessions_are_rarely_interrupted():
    harmless = [
        call["arguments"]["command"]
        for session in rows("agent_sessions.jsonl")
        for call in session["calls"]
        if call.get("label") == "harmless"
    ]
    asked = [line for line in harmless if not allowed(judge("Bash", {"command": line}))]
    assert len(asked) <= 0.08 * len(harmless)
