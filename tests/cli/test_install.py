import json
from pathlib import Path

import pytest

from checkrein.cli.opening import reading
from checkrein.doors.hooks.dialects import AGENTS
from checkrein.doors.hooks.files import settings_file
from checkrein.runtime import door_file, read_door
from checkrein.settings.sources import state_dir
from checkrein.store.installations import installations


def places():
    with reading() as reader:
        return installations(reader)


@pytest.fixture
def settings(project):
    return Path(project, ".claude", "settings.json")


def test_a_dry_run_shows_a_diff_and_writes_nothing(run, settings, home):
    text = run("install", "claude-code", "--dry-run")
    assert f"+++ {settings}" in text
    assert "+    " in text
    assert not settings.exists()
    assert not state_dir().exists()
    assert run.json("install", "claude-code", "--dry-run", "--json")["dry_run"] is True


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_hooks_go_in_and_come_out_again(run, agent, scope, project):
    file = settings_file(agent, scope.removeprefix("--"), Path(project))
    text = run("install", agent, scope)
    assert f"wrote    {file}" in text
    assert "The phase is building now" in text
    assert "/hooks" in text or agent != "codex"
    assert places() == [(agent, project if scope == "--project" else "")]
    assert door_file().exists()
    assert "Everything is in place already" in run("install", agent, scope)
    assert f"removed  {file}" in run("uninstall", agent, scope)
    assert not file.exists()
    assert places() == []
    assert "Nothing of ours was there" in run("uninstall", agent, scope)


def test_what_people_wrote_stays(run, settings):
    settings.parent.mkdir()
    mine = '{\n  "model": "opus"\n}\n'
    settings.write_text(mine)
    report = run.json("install", "claude-code", "--json")
    assert report["phase_was_set"] is True
    assert [Path(each).read_text() for each in report["backups"]] == [mine]
    assert json.loads(settings.read_text())["model"] == "opus"
    assert "-  " in run("uninstall", "claude-code", "--dry-run")
    run("uninstall", "claude-code")
    assert settings.read_text() == mine


def test_a_phase_that_is_set_stays(run):
    run("phase", "planning")
    assert "The phase stays planning." in run("install", "claude-code")


def test_a_file_the_agent_could_not_read_is_left_alone(run, settings):
    settings.parent.mkdir()
    settings.write_text("{ broken")
    assert "Nothing was changed" in run("install", "claude-code", code=3)
    assert settings.read_text() == "{ broken"
    assert places() == []


def test_what_cannot_be_written_is_not_noted(run, project, settings):
    settings.parent.mkdir()
    settings.symlink_to(Path(project, "nowhere", "deep", "file"))
    Path(project, "nowhere").write_text("a file in the way")
    run("install", "claude-code", code=3)
    assert places() == []


def test_how_long_a_question_waits_is_in_the_hooks(run, settings, user_settings):
    user_settings("[approval]\ntimeout_seconds = 100")
    run("install", "claude-code")
    assert json.loads(settings.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] > 100


@pytest.mark.parametrize("with_server", [True, False])
def test_an_agent_neither_installs_nor_removes(run, agent, settings, with_server, request):
    if with_server:
        request.getfixturevalue("server")
    assert agent.run("install", "claude-code").returncode == 7
    assert not settings.exists()
    assert places() == []
    run("install", "claude-code")
    before = settings.read_bytes()
    assert agent.run("uninstall", "claude-code").returncode == 7
    assert settings.read_bytes() == before
    assert len(places()) == 1


def test_a_running_server_is_told(run, server, settings):
    run("install", "claude-code")
    assert run.json("phase", "--json")["name"] == "building"
    assert settings.exists()
    run("uninstall", "claude-code")
    assert not settings.exists()


def test_a_server_that_runs_keeps_its_socket(run, server, monkeypatch):
    before = read_door()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    run("install", "claude-code")
    assert read_door().socket == before.socket
    assert run.json("status", "--json")["server"]["pid"] == server.pid


def test_the_plugin_is_a_folder_of_its_own(run, project):
    folder = Path(project, "plugin")
    assert "--plugin-dir" in run("plugin", str(folder))
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text())["name"] == "checkrein"
    assert "PreToolUse" in json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert not Path(project, ".claude").exists()
