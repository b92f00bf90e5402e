import sys
from pathlib import Path

import pytest

from checkrein.cli.probe import COMMAND, command_line, payload, probe
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.doors.hooks.events import read
from checkrein.doors.hooks.files import settings_file
from checkrein.overview import PROBES


@pytest.mark.parametrize("agent", AGENTS)
def test_the_call_is_announced_as_the_agent_would(agent):
    event = read(agent, payload(agent, "/p"))
    assert (event.kind, event.name, event.tool, event.session) == (
        "call",
        dialect(agent).gate,
        "Bash",
        PROBES,
    )
    assert event.arguments["command"] == COMMAND


@pytest.mark.parametrize("agent", AGENTS)
def test_the_installed_gate_closes(run, server, project, agent):
    run("install", agent)
    line = command_line(agent, settings_file(agent, "project", Path(project)))
    assert line.endswith(f"{agent} gate 350 || exit 2")
    assert probe(agent, line, project) == ""
    assert probe(agent, line, project) == ""


def test_a_gate_that_lets_through_is_named(project):
    assert "let a call through" in probe("claude-code", "true", project)
    assert "let a call through" in probe("claude-code", "exit 1", project)


def test_a_refusal_in_other_words_is_named(project):
    assert "own words" in probe("claude-code", "echo no >&2; exit 2", project)


def test_a_client_that_reaches_nobody_refuses_but_that_is_no_proof(run, project, home):
    run("install", "claude-code")
    line = command_line("claude-code", settings_file("claude-code", "project", Path(project)))
    door = home / "state" / "checkrein" / "door"
    door.write_text(door.read_text().replace(sys.executable, "/bin/false"))
    assert "without the server" in probe("claude-code", line, project)


def test_a_record_that_is_not_there_is_no_proof(project):
    line = (
        "reason='Checkrein refused it. (record 0abc)'; echo \"$reason\" >&2; "
        'printf \'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        '"permissionDecisionReason":"%s"}}\' "$reason"; exit 2'
    )
    assert "not on the record" in probe("claude-code", line, project)


def test_a_file_without_our_gate_has_none(project):
    assert command_line("claude-code", Path(project, "settings.json")) is None
