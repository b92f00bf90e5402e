import os
from pathlib import Path

import pytest

from checkrein import knocking
from checkrein.agents import user_name
from checkrein.cli import opening
from checkrein.cli.opening import Nothing, ask, confirmed, project_path, reading
from checkrein.errors import InputError, NotFoundError, StoreBusyError
from checkrein.ledger.entries import body_of_row
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.sqlite import SqliteStore

RULE = {"action": "deny", "tool": "x"}
CHANGES = {
    "rules add": ("rules", "add", "deny", "--tool", "y"),
    "rules edit": ("rules", "edit", "RULE", "--tool", "z"),
    "rules move": ("rules", "move", "RULE", "--priority", "7"),
    "rules rm": ("rules", "rm", "RULE"),
    "trust import": ("trust", "import", "trust.json", "--yes"),
    "trust reset": ("trust", "reset", "--yes"),
    "policy accept": ("policy", "accept", "--yes"),
    "policy revoke": ("policy", "revoke"),
    "phase": ("phase", "building"),
    "phase --clear": ("phase", "--clear"),
}


def recorded(kind=None):
    """What the record says, oldest first."""
    with reading() as reader:
        bodies = [body_of_row(row) for row in records.after(reader, 0)]
    return [body["data"] for body in bodies if body["kind"] == kind] if kind else bodies


def test_reading_what_is_not_there_is_reading_nothing(home):
    with reading() as reader:
        assert isinstance(reader, Nothing)
        assert reader.query("SELECT 1") == []
    assert not (home / "state").exists()


def test_without_a_server_the_command_is_the_authority_itself():
    made = ask("rule.add", rule=RULE)
    assert not knocking.is_running()
    assert recorded("rule_changed") == [
        {"change": "added", "id": made["id"], "rule": RULE, "actor": user_name(os.getuid())}
    ]


def test_with_a_server_it_is_the_server_that_writes(server):
    made = ask("rule.add", rule=RULE)
    assert [each["id"] for each in recorded("rule_changed")] == [made["id"]]
    assert ask("server.about")["pid"] == server.pid
    with pytest.raises(NotFoundError):
        ask("rule.remove", id="r-none")


def test_a_store_that_somebody_else_keeps_is_said_to_be_busy(monkeypatch):
    monkeypatch.setattr(opening, "LOCK_SECONDS", 0.1)
    store = SqliteStore.open(state_dir())
    try:
        with pytest.raises(StoreBusyError, match="doctor"):
            ask("rule.add", rule=RULE)
    finally:
        store.close()
    assert ask("rule.add", rule=RULE)["id"]


def test_a_server_that_is_just_starting_is_asked_a_moment_later(monkeypatch, server):
    """It takes the store before it listens: whoever asks in between finds nobody, and the store taken."""
    monkeypatch.setattr(opening, "LOCK_SECONDS", 0.1)
    real, early = knocking.connect, [None]
    monkeypatch.setattr(knocking, "connect", lambda: early.pop() if early else real())
    assert ask("server.about")["pid"] == server.pid


@pytest.fixture
def prepared(run, project):
    """Something for every command to change."""
    Path(project, "checkrein.toml").write_text('[[rules]]\naction = "allow"\ntool = "Bash"\n')
    Path(project, "trust.json").write_text('{"score": 0.4, "successes": 9, "failures": 1}')
    made = run.json("rules", "add", "deny", "--tool", "x", "--json")["id"]
    return lambda name: [made if word == "RULE" else word for word in CHANGES[name]]


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_works_while_a_server_runs(run, prepared, server, name):
    before = len(recorded())
    run(*prepared(name))
    after = recorded()[before:]
    assert len(after) == 1
    assert after[0]["data"]["actor"] == user_name(os.getuid())


@pytest.mark.parametrize("name", CHANGES)
def test_an_agent_changes_nothing_through_the_server(prepared, server, agent, name):
    before = len(recorded())
    done = agent.run(*prepared(name))
    assert done.returncode == 7, done.stderr
    assert "Only a person" in done.stderr
    kinds = [body["kind"] for body in recorded()[before:]]
    assert kinds == ["session_started", "request_refused"]
    assert f"session {agent.session}" in recorded("request_refused")[0]["reason"]


@pytest.mark.parametrize("name", ["rules add", "trust import", "policy accept", "phase"])
def test_an_agent_changes_nothing_where_no_server_runs(prepared, agent, name):
    before = len(recorded())
    done = agent.run(*prepared(name))
    assert done.returncode == 7, done.stderr
    assert [body["kind"] for body in recorded()[before:]] == ["request_refused", "record_closed"]


def test_an_agent_may_look(prepared, server, agent):
    assert agent.run("rules", "list").returncode == 0


def test_a_yes_is_needed_where_nobody_can_be_asked():
    confirmed("really?", True)
    with pytest.raises(InputError, match="--yes"):
        confirmed("really?", False)


def test_the_project_is_the_current_one_unless_named(project, monkeypatch, tmp_path):
    monkeypatch.chdir(project)
    assert project_path(None) == project
    assert project_path(str(tmp_path)) == str(tmp_path)
