"""What is registered with each agent: every call is gated, and our client answers before the agent does."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.hooks import registrations as subject
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.hookclient import client_command

DOOR = Path("/state/door")


def command(agent, mode, seconds):
    return client_command(DOOR, agent, mode, seconds)


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


def by_event(agent, wait=300):
    return {each.event: each for each in subject.registrations(agent, wait)}


def test_the_agents_own_gate_is_registered_and_waits_for_a_person(agent):
    gate = by_event(agent, wait=300)[dialect(agent).gate]
    assert (gate.mode, gate.timeout, gate.seconds) == ("gate", 360, 350)


@given(st.sampled_from(AGENTS), st.integers(1, 100_000))
def test_the_client_gives_up_before_the_agent_and_after_the_question(agent, wait):
    for each in subject.registrations(agent, wait):
        assert 1 <= each.seconds < each.timeout
        if each.mode != "tell":
            assert each.seconds > wait


def test_every_event_is_one_the_dialect_understands(agent):
    assert set(by_event(agent)) <= set(dialect(agent).events)
    assert len(by_event(agent)) == len(subject.registrations(agent))


def test_claude_code_in_full():
    found = {
        event: (each.mode, each.timeout, each.matcher) for event, each in by_event("claude-code").items()
    }
    assert found == {
        "PreToolUse": ("gate", 360, "*"),
        "ConfigChange": ("gate", 360, ""),
        "UserPromptExpansion": ("gate", 360, "^(checkrein:)?(planning|building|auditing)$"),
        "PermissionRequest": ("permission", 360, "*"),
        "PostToolUse": ("tell", 15, "*"),
        "PostToolUseFailure": ("tell", 15, "*"),
        "UserPromptSubmit": ("tell", 15, ""),
        "SessionStart": ("tell", 15, ""),
        "SessionEnd": ("tell", 10, ""),
        "Stop": ("tell", 15, ""),
        "SubagentStart": ("tell", 15, ""),
        "SubagentStop": ("tell", 15, ""),
    }


@pytest.mark.invariant(
    "a phase command that does not reach the server is stopped, "
    "so nobody believes in a phase that does not hold"
)
def test_a_phase_command_that_does_not_reach_the_server_is_stopped():
    entry = subject.entries("claude-code", command)["UserPromptExpansion"]
    (handler,) = entry["hooks"]
    assert handler["command"].endswith("claude-code gate 350 || exit 2")
    assert handler["onFailure"] == "block"
    for name in ("planning", "building", "auditing", "checkrein:building"):
        assert re.search(entry["matcher"], name)
    for name in ("review", "planning-poker", "other:building"):
        assert not re.search(entry["matcher"], name)


def entry_of(agent, event):
    return subject.entries(agent, command)[event]


def test_the_words_of_each_agent():
    gate = command("claude-code", "gate", 350)
    assert entry_of("claude-code", "PreToolUse") == {
        "matcher": "*",
        "hooks": [{"type": "command", "command": gate, "timeout": 360, "onFailure": "block"}],
    }
    assert entry_of("codex", "SessionEnd") == {
        "hooks": [{"type": "command", "command": command("codex", "tell", 2), "timeout": 3}]
    }
    assert entry_of("gemini-cli", "BeforeTool") == {
        "matcher": "*",
        "hooks": [
            {
                "type": "command",
                "name": "checkrein",
                "command": command("gemini-cli", "gate", 350),
                "timeout": 360_000,
            }
        ],
    }
    assert entry_of("copilot-cli", "preToolUse") == {
        "type": "command",
        "bash": command("copilot-cli", "gate", 350),
        "timeoutSec": 360,
    }
    assert entry_of("cursor", "preToolUse") == {
        "command": command("cursor", "gate", 350),
        "timeout": 360,
        "failClosed": True,
    }


def test_only_a_gate_fails_closed(agent):
    for each in subject.registrations(agent):
        text = json.dumps(subject.entry(agent, each, command(agent, each.mode, each.seconds)))
        closed = ("|| exit 2" in text, "onFailure" in text or "failClosed" in text)
        can_be_told = bool(dialect(agent).hooks.fails_closed)
        assert closed == ((each.mode == "gate"), (each.mode == "gate" and can_be_told))


def test_our_own_lines_are_recognised(agent):
    for each in subject.registrations(agent):
        value = subject.entry(agent, each, command(agent, each.mode, each.seconds))
        (handler,) = subject.handlers(agent, value)
        assert subject.client_of(agent, handler) == subject.Client(agent, each.mode, each.seconds)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_folder_name_is_recognised(name):
    line = client_command(Path("/state") / name.replace("/", "x"), "codex", "gate", 9)
    assert subject.recognise(line) == subject.Client("codex", "gate", 9)


@pytest.mark.parametrize(
    "line",
    [
        "true; '/x/checkrein-hook' /door claude-code gate 350 || exit 2",
        "/x/checkrein-hook /door claude-code gate 350 || exit 2; true",
        "/x/checkrein-hook /door claude-code gate 350 || true",
        "/x/checkrein-hook /door unknown gate 350",
        "/x/checkrein-hook /door codex guess 350",
        "/x/checkrein-hook /door codex gate soon",
        "/x/other-hook /door codex gate 350",
        "python3 -I -S /x/client.py /door codex gate 350",
        "python3 -c x /x/hookclient/client.py /door codex gate 350",
        "echo 'open",
        "",
    ],
)
def test_what_only_mentions_us_is_not_ours(line):
    assert subject.recognise(line) is None


def test_the_other_forms_of_our_client_are_ours():
    for program in (
        "/x/checkrein-hook",
        "'/x y/checkrein-hook'",
        "/py -I -S /x/checkrein/hookclient/client.py",
    ):
        assert subject.recognise(f"{program} /door gemini-cli tell 5") == subject.Client(
            "gemini-cli", "tell", 5
        )


@pytest.mark.parametrize("handler", [None, 1, "x", {}, {"command": 1}, {"bash": []}])
def test_nonsense_is_nobodys_handler(agent, handler):
    assert subject.client_of(agent, handler) is None


@pytest.mark.parametrize("item", [None, 1, [], {"hooks": 1}, {"hooks": None}, {"hooks": [1, "x"]}])
def test_nonsense_has_no_handlers_of_ours(agent, item):
    assert all(subject.client_of(agent, each) is None for each in subject.handlers(agent, item))


def test_the_status_line_has_no_gate():
    line = subject.status_line(command)
    assert line["type"] == "command"
    assert subject.recognise(line["command"]) == subject.Client("claude-code", "status", 2)
    assert "exit" not in line["command"]
