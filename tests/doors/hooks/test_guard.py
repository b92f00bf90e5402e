"""Our registrations stay in the agent's settings: over the real installer's files."""

import os
from pathlib import Path

import pytest

from checkrein.doors.hooks import guard
from checkrein.doors.hooks.guard import would_remove_us
from checkrein.doors.hooks.install import apply, plan
from checkrein.settings.reading import LARGEST_FILE
from checkrein.store.installations import add_installation


@pytest.fixture
def installed(pipeline, project):
    """Our hooks in the project's settings; the file."""
    apply(plan("claude-code", "project", Path(project)))
    pipeline.store.write(lambda tx: add_installation(tx, "claude-code", project, 1.0))
    return Path(project, ".claude", "settings.json")


@pytest.fixture
def why(pipeline, project):
    return lambda file, agent="claude-code": would_remove_us(pipeline.store, agent, str(file), project)


def test_settings_that_still_hold_our_hooks_are_fine(installed, why):
    assert why(installed) == ""
    installed.write_text(installed.read_text().replace("{", '{"model": "opus",', 1))
    assert why(installed) == ""


def test_settings_without_our_hooks_are_refused_with_a_reason(installed, why):
    whole = installed.read_text()
    installed.write_text(whole.replace("{", '{"disableAllHooks": true,', 1))
    assert "disableAllHooks" in why(installed)
    installed.write_text("{}")
    assert "hook" in why(installed)
    installed.unlink()
    assert why(installed)


def test_where_we_are_not_installed_everything_may_change(pipeline, project):
    file = Path(project, ".claude", "settings.json")
    assert would_remove_us(pipeline.store, "claude-code", str(file), project) == ""


def test_another_agent_s_or_project_s_files_are_not_ours_to_guard(installed, why, pipeline):
    installed.write_text("{}")
    assert why(installed, "codex") == ""
    assert would_remove_us(pipeline.store, "claude-code", str(installed), "/elsewhere") == ""
    assert why("") == ""


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_refused_and_never_waited_for(installed, why, make):
    installed.unlink()
    make(installed)
    assert "cannot be read" in why(installed)


def test_text_nobody_can_read_or_without_end_is_refused(installed, why):
    installed.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in why(installed)
    installed.write_bytes(b" " * (LARGEST_FILE + 1))
    assert "too large" in why(installed)
    assert "cannot be read" in why("/a\x00b")


def test_no_more_is_read_than_we_take(installed):
    installed.write_bytes(b" " * (LARGEST_FILE + 1_000))
    assert len(guard._content(installed)) == LARGEST_FILE + 1


def test_a_file_named_by_another_way_is_the_same_file(installed, why, home):
    """The agent may name its project by a link; ours is the real folder."""
    (home / "link").symlink_to(installed.parent.parent)
    installed.write_text("{}")
    for name in (
        home / "link" / ".claude" / "settings.json",
        installed.parent / ".." / ".claude" / "settings.json",
    ):
        assert "hook" in why(name), name


def test_the_user_s_own_settings_need_us_only_where_we_were_put(installed, why, pipeline, home):
    own = home / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    assert why(own) == ""
    pipeline.store.write(lambda tx: add_installation(tx, "claude-code", "", 1.0))
    assert "hook" in why(own)


def test_the_user_s_own_settings_are_guarded_also_where_their_home_is_the_project(pipeline, home):
    own = home / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    pipeline.store.write(lambda tx: add_installation(tx, "claude-code", "", 1.0))
    assert "hook" in would_remove_us(pipeline.store, "claude-code", str(own), str(home))
