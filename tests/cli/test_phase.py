import pytest

from checkrein.settings.sources import state_dir
from checkrein.store.agents import Session, put_session
from checkrein.store.sqlite import SqliteStore


@pytest.fixture
def sessions(project):
    store = SqliteStore.open(state_dir())
    for name in ("abc-1", "abc-2", "xyz"):
        met = Session(agent="claude-code", id=name, project=project, started_at=1.0)
        store.write(lambda tx, met=met: put_session(tx, met))
    store.close()


def test_without_a_phase_the_strictest_applies_and_nothing_is_written(run, home):
    text = run("phase")
    assert "auditing (no phase is set" in text
    assert "everything else:           refused" in text
    assert not (home / "state").exists()


def test_it_is_set_for_the_project_unless_said_otherwise(run, project):
    text = run("phase", "building")
    assert f"Changed for {project}." in text
    assert "git_remote" in text
    assert "decided by trust" in text
    run("phase", "planning", "--user")
    shown = run.json("phase", "--json")
    assert (shown["name"], shown["is_set"]) == ("building", True)
    assert shown["profile"]["denied"] == ["git_remote"]
    assert [(each["project"], each["phase"]) for each in shown["set"]] == [
        ("", "planning"),
        (project, "building"),
    ]
    run("phase", "--clear")
    assert run.json("phase", "--json")["name"] == "planning"
    run("phase", "--clear", "--user")
    assert run.json("phase", "--json")["is_set"] is False


def test_a_session_is_named_by_the_beginning_of_its_id(run, sessions):
    run("phase", "building")
    assert "session xyz" in run("phase", "planning", "--session", "x")
    assert run.json("phase", "--session", "xyz", "--json")["name"] == "planning"
    assert run.json("phase", "--session", "abc-1", "--json")["name"] == "building"
    assert "More than one" in run("phase", "planning", "--session", "abc", code=2)
    assert "No session" in run("phase", "planning", "--session", "nobody", code=4)


def test_what_makes_no_sense_is_refused(run):
    assert "no phase 'sleeping'" in run("phase", "sleeping", code=2)
    assert "too much" in run("phase", "building", "--clear", code=2)
    assert "too much" in run("phase", "building", "--user", "--session", "x", code=2)


def test_a_phase_of_the_user_s_own_is_explained_from_its_lists(run, user_settings):
    user_settings('[phases.building]\nallowed = ["file_read"]\ndenied = ["network"]\ntrust_gated = []')
    text = run("phase", "building")
    assert "refused:                   network" in text
    assert "asks until" not in text
