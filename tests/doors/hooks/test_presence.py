"""Whether our hooks would run: everything that quietly stops them is seen and named."""

import json
from pathlib import Path

import pytest

from checkrein.doors.hooks import files, install, jsontext, presence
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.doors.hooks.registrations import registrations
from checkrein.hookclient import client_command
from checkrein.runtime import door_file


def ours(agent, mode, seconds):
    return client_command(Path("/state/door"), agent, mode, seconds)


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "work"
    path.mkdir()
    return path


def put(agent, folder, scope="project"):
    install.apply(install.plan(agent, scope, folder, command=ours))
    return files.settings_file(agent, scope, folder)


def seen(agent, folder, scope="project"):
    return presence.present(agent, scope, folder, command=ours)


def trust(agent, home, folder):
    """What a person's yes leaves behind in the agent's own files."""
    if agent == "gemini-cli":
        files.write(
            home / ".gemini" / "trustedFolders.json", json.dumps({str(folder): "TRUST_FOLDER"}), 0o600
        )
    if agent == "copilot-cli":
        files.write(
            home / ".copilot" / "config.json",
            f"// managed\n{json.dumps({'trustedFolders': [str(folder)]})}",
            0o600,
        )
    if agent == "codex":
        lines = [f"[projects.{json.dumps(str(folder))}]", 'trust_level = "trusted"']
        path = files.settings_file("codex", "project", folder)
        for keys in presence._codex_handlers(path).values():
            for key, trusted in keys:
                lines += [f"[hooks.state.{json.dumps(key)}]", f'trusted_hash = "{trusted}"']
        files.write(home / ".codex" / "config.toml", "\n".join(lines), 0o600)


def test_nothing_is_there_before_installing(agent, folder):
    found = seen(agent, folder)
    assert found.missing == tuple(each.event for each in registrations(agent))
    assert not found.installed
    assert not found.ok


def test_all_is_well_after_installing_and_trusting(agent, folder, home):
    put(agent, folder)
    trust(agent, home, folder)
    found = seen(agent, folder)
    assert found.ok, found
    assert set(found.complete) == {each.event for each in registrations(agent)}


@pytest.mark.parametrize("agent", ["codex", "gemini-cli", "copilot-cli"])
def test_an_untrusted_folder_is_named(agent, folder):
    put(agent, folder)
    (reason,) = seen(agent, folder).reasons
    assert "trust" in reason
    assert dialect(agent).title.split()[0] in reason


def change(agent, path, event, edit):
    """Edit our one handler of an event."""
    inside = (0, "hooks", 0) if "hooks" in jsontext.parse(path.read_text())["hooks"][event][0] else (0,)
    text = path.read_text()
    for key, value in edit.items():
        text = jsontext.set_member(text, ("hooks", event, *inside, key), value)
    path.write_text(text)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"command": "true", "bash": "true"}, "it is not there"),
        (
            {
                "command": "/x/checkrein-hook /evil codex tell 1",
                "bash": "/x/checkrein-hook /evil codex tell 1",
            },
            "command",
        ),
        ({"timeout": 1, "timeoutSec": 1}, "time limit"),
        ({"async": True}, "`async`"),
        ({"if": "Bash(rm *)"}, "`if`"),
    ],
)
def test_a_changed_hook_is_named(agent, folder, edit, why):
    path = put(agent, folder)
    gate = dialect(agent).gate
    change(agent, path, gate, edit)
    found = seen(agent, folder)
    assert why in (found.altered.get(gate) or ("it is not there" if gate in found.missing else ""))
    assert why in presence.still_guarded(agent, path, path.read_text(), installed=True, command=ours)


def test_a_gate_that_no_longer_fails_closed_is_named(folder):
    path = put("claude-code", folder)
    change("claude-code", path, "PreToolUse", {"onFailure": "continue"})
    assert "onFailure" in seen("claude-code", folder).altered["PreToolUse"]
    text = jsontext.remove_item(path.read_text(), ("hooks", "PreToolUse", 0, "hooks", 0, "onFailure"))
    assert "onFailure" in presence.still_guarded("claude-code", path, text, installed=True, command=ours)


@pytest.mark.parametrize("matcher", ["Bash", "nothing"])
def test_a_narrower_matcher_is_named(folder, matcher):
    path = put("claude-code", folder)
    path.write_text(jsontext.set_member(path.read_text(), ("hooks", "PreToolUse", 0, "matcher"), matcher))
    assert "matcher" in seen("claude-code", folder).altered["PreToolUse"]


def test_harmless_changes_are_not_named(agent, folder, home):
    path = put(agent, folder)
    key, gate = dialect(agent).hooks.timeout_key, dialect(agent).gate
    change(agent, path, gate, {"statusMessage": "judging", key: 900_000})
    trust(agent, home, folder)
    path.write_text(jsontext.insert_item(path.read_text(), ("hooks", gate), theirs(agent)))
    assert seen(agent, folder).ok
    assert presence.still_guarded(agent, path, path.read_text(), installed=True, command=ours) == ""


def theirs(agent):
    handler = {"type": "command", "command": "mine", "bash": "mine"}
    return {"hooks": [handler]} if agent in ("claude-code", "codex", "gemini-cli") else handler


def test_a_file_the_agent_cannot_read_runs_nothing(agent, folder):
    path = put(agent, folder)
    path.write_text(path.read_text()[:-3])
    found = seen(agent, folder)
    assert not found.complete
    assert str(path) in found.reasons[0]
    assert str(path) in presence.still_guarded(agent, path, path.read_text(), installed=True, command=ours)


@pytest.mark.parametrize(
    "name", ["work/.claude/settings.json", "work/.claude/settings.local.json", ".claude/settings.json"]
)
def test_hooks_switched_off_anywhere_are_named(folder, home, name):
    put("claude-code", folder)
    path = home / name
    text = jsontext.set_member(files.text_of(path) or "", ("disableAllHooks",), True)
    files.write(path, text, 0o600)
    assert any("disableAllHooks" in reason for reason in seen("claude-code", folder).reasons)
    for installed in (True, False):
        why = presence.still_guarded("claude-code", path, text, installed=installed, command=ours)
        assert "disableAllHooks" in why


def test_gemini_hooks_the_user_switched_off_are_named_in_projects_too(folder, home):
    put("gemini-cli", folder)
    files.write(home / ".gemini" / "settings.json", '{"hooksConfig": {"disabled": ["checkrein"]}}', 0o600)
    assert any("hooksConfig.disabled" in reason for reason in seen("gemini-cli", folder).reasons)


def test_only_managed_hooks_is_named(folder, tmp_path, monkeypatch):
    put("claude-code", folder)
    managed = tmp_path / "managed.json"
    managed.write_text('{"allowManagedHooksOnly": true}')
    monkeypatch.setattr(presence, "MANAGED", (managed,))
    assert "allowManagedHooksOnly" in seen("claude-code", folder).reasons[0]


# The guard


def test_removing_any_one_hook_is_seen(agent, folder):
    path = put(agent, folder)
    text = path.read_text()
    assert presence.still_guarded(agent, path, text, installed=True, command=ours) == ""
    for each in registrations(agent):
        less = jsontext.remove_item(text, ("hooks", each.event))
        why = presence.still_guarded(agent, path, less, installed=True, command=ours)
        assert f"our {each.event} hook" in why


@pytest.mark.parametrize("text", ["", "{}", "null", '{"hooks": {}}'])
def test_an_emptied_or_deleted_file_is_seen(agent, folder, text):
    path = put(agent, folder)
    assert presence.still_guarded(agent, path, text, installed=True, command=ours)


def test_a_file_we_do_not_belong_in_may_say_what_it_likes(folder):
    path = files.settings_file("claude-code", "project", folder)
    for text in ("{}", "{broken", '{"hooks": {}}'):
        assert presence.still_guarded("claude-code", path, text, installed=False, command=ours) == ""
    local = path.with_name("settings.local.json")
    assert presence.still_guarded("claude-code", local, "{}", installed=True, command=ours) == ""
    skill = folder / ".claude" / "skills" / "x" / "SKILL.md"
    assert presence.still_guarded("claude-code", skill, "# words", installed=True, command=ours) == ""


def test_without_being_told_the_users_own_file_decides(folder):
    path = files.settings_file("claude-code", "project", folder)
    assert presence.still_guarded("claude-code", path, "{}", command=ours)
    own = put("claude-code", folder, "user")
    assert presence.still_guarded("claude-code", path, "{}", command=ours) == ""
    assert presence.still_guarded("claude-code", own, "{}", command=ours)


def test_by_default_the_client_of_this_environment_is_expected(folder):
    install.apply(install.plan("claude-code", "project", folder))
    assert str(door_file()) in files.settings_file("claude-code", "project", folder).read_text()
    assert presence.present("claude-code", "project", folder).ok
    assert "command" in str(seen("claude-code", folder).altered)


# Codex


def test_codex_hashes_as_codex_does():
    """Seen in `hooks/list` of Codex 0.166."""
    line = {"type": "command", "command": "'/a b' é || exit 2", "timeout": 360}
    assert presence._codex_hash("PreToolUse", {"matcher": "*"}, line) == (
        "sha256:d5b7195717fef264a42ba9fef27a36fa23adece6f5178c37db6273dd132621ba"
    )
    line = {"type": "command", "command": "x", "timeout": 15, "statusMessage": "hm"}
    assert presence._codex_hash("Stop", {}, line) == (
        "sha256:f4c30c9b38fcac69d3d43993d115f885db127d91e0cb6d67c0702654a768cba0"
    )
    assert presence._codex_hash("PermissionRequest", {"matcher": ""}, {"command": "x"}) == (
        "sha256:a1d7821aedf3a03443b10bd07715ce0e0a5ea23b77106daca79014a2b6a131b0"
    )


def test_codex_trust_is_lost_with_any_change(folder, home):
    put("codex", folder)
    trust("codex", home, folder)
    assert presence.codex_trusted("project", folder) == ""
    install.apply(install.plan("codex", "project", folder, command=ours, wait=900))
    assert "/hooks" in presence.codex_trusted("project", folder)


def test_codex_switches_are_seen(folder, home):
    put("codex", folder)
    trust("codex", home, folder)
    config = home / ".codex" / "config.toml"
    good = config.read_text()
    config.write_text(good.replace("trusted_hash", "enabled = false\ntrusted_hash", 1))
    assert "switched off" in presence.codex_trusted("project", folder)
    config.write_text(good + "\n[features]\nhooks = false\n")
    assert "features.hooks" in presence.codex_trusted("project", folder)
    config.write_text(good.replace('"trusted"', '"untrusted"'))
    assert "folder" in presence.codex_trusted("project", folder)
    config.write_text(good)
    files.write(folder / ".codex" / "config.toml", "[features]\nhooks = false\n", 0o600)
    assert str(folder) in presence.codex_trusted("project", folder)
    assert str(folder) in presence.codex_trusted("user", folder)
    (folder / ".codex" / "config.toml").unlink()
    assert presence.codex_trusted("project", folder) == ""
    config.write_text("not = [toml")
    assert presence.codex_trusted("project", folder)


def test_codex_typing_unseen_is_named_until_it_is_switched_off(folder, home):
    own = home / ".codex" / "config.toml"
    assert str(own) in presence.codex_unseen(folder)
    assert any(each == presence.codex_unseen(folder) for each in install.plan("codex", "user", folder).notes)
    files.write(own, "[features]\nunified_exec_tty = false\n", 0o600)
    assert presence.codex_unseen(folder) == ""
    assert not any("unified_exec_tty" in each for each in install.plan("codex", "user", folder).notes)
    # A project's own file outranks it, and may not be read at all.
    files.write(folder / ".codex" / "config.toml", "[features]\nunified_exec_tty = true\n", 0o600)
    assert presence.codex_unseen(folder)
    own.unlink()
    files.write(folder / ".codex" / "config.toml", "[features]\nunified_exec_tty = false\n", 0o600)
    assert presence.codex_unseen(folder)


@pytest.mark.parametrize(
    ("level", "name", "good"),
    [
        ("TRUST_FOLDER", "work", True),
        ("TRUST_FOLDER", "", True),
        ("TRUST_PARENT", "other", True),
        ("DO_NOT_TRUST", "work", False),
        ("TRUST_FOLDER", "other", False),
    ],
)
def test_gemini_trust_reaches_down(folder, home, tmp_path, level, name, good):
    put("gemini-cli", folder)
    files.write(home / ".gemini" / "trustedFolders.json", json.dumps({str(tmp_path / name): level}), 0o600)
    assert seen("gemini-cli", folder).ok is good


def test_gemini_without_folder_trust_needs_none(folder, home):
    put("gemini-cli", folder)
    files.write(
        home / ".gemini" / "settings.json", '{"security": {"folderTrust": {"enabled": false}}}', 0o600
    )
    assert seen("gemini-cli", folder).ok
