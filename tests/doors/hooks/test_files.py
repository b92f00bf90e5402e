"""Agents' settings files: found where the agent looks, refused where it would drop them, written whole."""

import json
import os
import stat

import pytest

from checkrein.doors.hooks import files
from checkrein.doors.hooks.dialects import AGENTS
from checkrein.errors import ConfigError

SOUND = {"type": "command", "command": "x", "bash": "x"}


def hooks(agent, handler, event="Stop"):
    item = {"hooks": [handler]} if agent in ("claude-code", "codex", "gemini-cli") else handler
    return json.dumps({"hooks": {event if agent != "gemini-cli" else "AfterTool": [item]}})


@pytest.mark.parametrize(
    ("agent", "user", "project"),
    [
        ("claude-code", ".claude/settings.json", ".claude/settings.json"),
        ("codex", ".codex/hooks.json", ".codex/hooks.json"),
        ("gemini-cli", ".gemini/settings.json", ".gemini/settings.json"),
        ("copilot-cli", ".copilot/hooks/checkrein.json", ".github/hooks/checkrein.json"),
        ("cursor", ".cursor/hooks.json", ".cursor/hooks.json"),
    ],
)
def test_the_files_are_where_the_agent_looks(home, agent, user, project):
    assert files.settings_file(agent, "user") == home / user
    assert files.settings_file(agent, "project", home / "p") == home / "p" / project


@pytest.mark.parametrize(
    ("agent", "variable", "expected"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("copilot-cli", "COPILOT_HOME", "hooks/checkrein.json"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ],
)
def test_a_moved_home_is_respected(home, monkeypatch, agent, variable, expected):
    monkeypatch.setenv(variable, str(home / "else where"))
    assert files.settings_file(agent, "user") == home / "else where" / expected
    assert files.agent_home(agent) in files.settings_file(agent, "user").parents


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", [None, "", " \n", "{}", '{"hooks": {}}'])
def test_a_file_without_hooks_is_sound(agent, text):
    assert not files.document(agent, text).get("hooks")


@pytest.mark.parametrize("agent", AGENTS)
def test_sound_hooks_are_accepted(agent):
    assert files.document(agent, hooks(agent, SOUND))["hooks"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"type": "nope"}, ".type`"),
        ({"timeout": "5", "timeoutSec": "5"}, ".timeout"),
        ({"timeout": True, "timeoutSec": True}, ".timeout"),
    ],
)
def test_a_bad_handler_is_named(agent, change, named):
    with pytest.raises(ConfigError) as caught:
        files.document(agent, hooks(agent, SOUND | change), "settings.json")
    assert named in str(caught.value)
    assert "settings.json: `hooks." in str(caught.value)
    assert "ignores every hook" in str(caught.value)


@pytest.mark.parametrize(
    ("agent", "text", "named"),
    [
        (
            "claude-code",
            hooks("claude-code", SOUND | {"onFailure": "deny"}),
            "`hooks.Stop[0].hooks[0].onFailure`",
        ),
        ("claude-code", '{"hooks": {"Stop": [{"command": "x"}]}}', "`hooks.Stop[0].hooks`"),
        ("claude-code", '{"hooks": {"Stop": [{"hooks": [], "matcher": 1}]}}', "`hooks.Stop[0].matcher`"),
        ("claude-code", '{"hooks": {"Stop": [1]}}', "`hooks.Stop[0]`"),
        ("claude-code", '{"hooks": {"Stop": {}}}', "`hooks.Stop`"),
        ("claude-code", '{"hooks": []}', "`hooks`"),
        ("claude-code", "[]", "(whole file)"),
        ("claude-code", hooks("claude-code", {"type": "command"}), "`hooks.Stop[0].hooks[0].command`"),
        ("claude-code", "{ // no\n}", "line 1"),
        ("claude-code", '{"a": 1,}', "line 1"),
        ("codex", hooks("codex", SOUND | {"timeout": 1.5}), "whole number"),
        ("codex", hooks("codex", SOUND | {"timeout": -1}), "whole number"),
        ("codex", hooks("codex", {"type": "http", "url": "x"}), "does not know"),
        ("codex", '{"hooks": {}, "mine": 1}', "`mine`"),
        ("codex", "\ufeff{}", "byte order mark"),
        ("gemini-cli", '{"a": 1,}', "line 1"),
        ("copilot-cli", '{"hooks": {"preToolUse": {}}}', "`hooks.preToolUse`"),
        ("copilot-cli", "{ /* no */ }", "line 1"),
    ],
)
def test_what_the_real_programs_drop_is_refused(agent, text, named):
    with pytest.raises(ConfigError) as caught:
        files.document(agent, text)
    assert named in str(caught.value)
    assert "Nothing was changed" in str(caught.value)


def test_what_the_real_programs_take_is_taken():
    assert files.document("claude-code", "\ufeff{}") == {}
    assert files.document("gemini-cli", '{ // a\n "hooks": {"disabled": "x"} /* b */ }')
    assert files.document(
        "codex", '{"description": "x", "hooks": {"Stop": [{"matcher": null, "hooks": []}]}}'
    )
    strange = {"Nope": [{"hooks": [SOUND | {"extra": 1}]}]}
    assert files.document("claude-code", json.dumps({"hooks": strange}))["hooks"] == strange


def test_what_is_no_text_or_no_file_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match="UTF-8"):
        files.text_of(path)
    with pytest.raises(ConfigError, match="not a plain file"):
        files.text_of(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a plain file"):
        files.text_of(tmp_path / "pipe")
    assert files.text_of(tmp_path / "none") is None
    assert files.text_of(path / "below") is None


def test_line_ends_are_neither_read_nor_written_differently(tmp_path):
    path = tmp_path / "a.json"
    files.write(path, "\ufeffa\r\nb\nü\n", 0o600)
    assert path.read_bytes() == "\ufeffa\r\nb\nü\n".encode()
    assert files.text_of(path) == "\ufeffa\r\nb\nü\n"


def test_a_new_file_gets_its_mode_and_an_old_one_keeps_it(tmp_path):
    path = tmp_path / "deep" / "a.json"
    files.write(path, "1", 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    files.write(path, "2", 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text() == "2"
    assert os.listdir(path.parent) == ["a.json"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "a.json"
    target.write_text("1")
    link = tmp_path / "a.json"
    link.symlink_to(target)
    files.write(link, "2", 0o600)
    assert link.is_symlink()
    assert target.read_text() == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_stays(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("1")
    os.chown(path, 12345, 23456)
    files.write(path, "2", 0o600)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_failed_write_leaves_everything_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("1")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write(path, "2", 0o600)
    assert path.read_text() == "1"
    assert os.listdir(tmp_path) == ["a.json"]


def test_removing_takes_empty_folders_along_up_to_a_limit(tmp_path):
    path = tmp_path / "stop" / "a" / "b" / "c.json"
    files.write(path, "1", 0o600)
    (tmp_path / "stop" / "a" / "other").write_text("")
    files.remove(path, tmp_path / "stop")
    assert not path.parent.exists()
    assert (tmp_path / "stop" / "a").exists()
    (tmp_path / "stop" / "a" / "other").unlink()
    files.remove(tmp_path / "stop" / "a" / "none", tmp_path / "stop")
    assert os.listdir(tmp_path / "stop") == []
