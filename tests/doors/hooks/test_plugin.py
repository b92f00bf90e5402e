"""The plugin: the same hooks as an installation, in the form Claude Code takes for a plugin."""

import json
from pathlib import Path

import pytest

from checkrein.doors.hooks import files, plugin
from checkrein.doors.hooks.registrations import entries
from checkrein.errors import InputError
from checkrein.hookclient import client_command

ROOT = Path(__file__).parent.parent.parent.parent


def ours(agent, mode, seconds):
    return client_command(Path("/state/door"), agent, mode, seconds)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "plugin"
    plugin.write_plugin(path, command=ours)
    return path


def test_the_hooks_are_those_of_an_installation(folder):
    hooks = files.document("claude-code", (folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert hooks == {event: [entry] for event, entry in entries("claude-code", ours).items()}


def test_the_folder_has_everything_a_plugin_needs(folder):
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == "checkrein"
    readme = (folder / "README.md").read_text()
    assert len(readme.split()) >= 40
    assert str(folder) in readme
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("phase", ["planning", "building", "auditing"])
def test_phase_commands_carry_the_plugins_name(folder, phase):
    text = (folder / "skills" / phase / "SKILL.md").read_text()
    assert f"name: {phase}\n" in text
    assert "disable-model-invocation: true\n" in text
    assert "`/checkrein:planning`" in text
    assert "`/planning`" not in text


def test_writing_again_replaces_ours(folder):
    plugin.write_plugin(folder, command=ours, wait=900)
    assert '"timeout": 960' in (folder / "hooks" / "hooks.json").read_text()


@pytest.mark.parametrize("name", ["notes.txt", ".claude-plugin/plugin.json"])
def test_somebody_elses_folder_is_left_alone(tmp_path, name):
    other = tmp_path / "other"
    files.write(other / name, '{"name": "other"}', 0o644)
    with pytest.raises(InputError, match="something else"):
        plugin.write_plugin(other, command=ours)
    with pytest.raises(InputError, match="something else"):
        plugin.write_plugin(other / name, command=ours)
    assert sum(1 for each in other.rglob("*") if each.is_file()) == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="you can write"):
        plugin.write_plugin(tmp_path / "file" / "below", command=ours)
