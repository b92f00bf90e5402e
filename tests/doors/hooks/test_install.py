"""Installing and removing: our hooks come and go, nobody else's byte changes."""

import json
import os
import stat
from pathlib import Path

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.hooks import files, install, jsontext
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.doors.hooks.registrations import client_of, handlers, registrations
from checkrein.errors import ConfigError, InputError
from checkrein.hookclient import client_command


def door(name):
    return lambda agent, mode, seconds: client_command(Path(name), agent, mode, seconds)


OURS = door("/state/door")


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "work"
    path.mkdir()
    return path


def put(agent, folder, *, scope="project", command=OURS, wait=300):
    plan = install.plan(agent, scope, folder, command=command, wait=wait)
    install.apply(plan)
    return plan


def take_out(agent, folder, scope="project"):
    plan = install.plan_removal(agent, scope, folder)
    install.apply(plan)
    return plan


def tree(folder):
    """Every file and its bytes, without our backups."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and install.BACKUP not in path.name
    }


def theirs(agent):
    """Somebody else's hook for the agent's gate."""
    handler = {"type": "command", "command": "mine", "bash": "mine"}
    if agent in ("copilot-cli", "cursor"):
        return {"version": 1, "hooks": {dialect(agent).gate: [handler]}}
    return {"hooks": {dialect(agent).gate: [{"matcher": "Bash", "hooks": [handler]}]}}


def events(agent, path):
    document = files.document(agent, files.text_of(path))
    return {
        event: [
            client.mode for item in items for h in handlers(agent, item) if (client := client_of(agent, h))
        ]
        for event, items in document.get("hooks", {}).items()
    }


def test_every_event_is_there_once(agent, folder):
    put(agent, folder)
    path = files.settings_file(agent, "project", folder)
    assert events(agent, path) == {each.event: [each.mode] for each in registrations(agent)}


def test_the_second_time_nothing_changes(agent, folder):
    put(agent, folder)
    before = tree(folder)
    assert put(agent, folder).changes == ()
    assert tree(folder) == before


def test_planning_writes_nothing(agent, folder):
    assert install.plan(agent, "project", folder, command=OURS).changes
    assert os.listdir(folder) == []


def test_moved_and_slower_installations_are_replaced_in_place(agent, folder):
    path = files.settings_file(agent, "project", folder)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(theirs(agent), indent=4))
    put(agent, folder)
    order = jsontext.parse(path.read_text())
    put(agent, folder, command=door("/other place/door"), wait=600)
    text = path.read_text()
    assert "/state/door" not in text
    assert text.count("/other place/door") == len(registrations(agent)) + (agent == "claude-code")
    assert [list(order), list(order["hooks"])] == [
        list(jsontext.parse(text)),
        list(jsontext.parse(text)["hooks"]),
    ]
    assert events(agent, path)[dialect(agent).gate] == ["gate"]
    assert (
        theirs(agent)["hooks"][dialect(agent).gate][0] in jsontext.parse(text)["hooks"][dialect(agent).gate]
    )
    assert put(agent, folder, command=door("/other place/door"), wait=600).changes == ()


def test_a_file_we_made_goes_and_its_folders_with_it(agent, folder):
    put(agent, folder)
    take_out(agent, folder)
    assert os.listdir(folder) == []


STYLES = [
    "{}",
    "{ }\n",
    "{\n}\n",
    "",
    "\n",
    '{"hooks": {}}',
    '{\n\t"hooks": {\n\t\t"$gate": []\n\t}\n}\n',
    '{"hooks":{"$gate":[$theirs]}}',
    '{\r\n    "hooks": {\r\n        "$gate": [\r\n            $theirs\r\n        ]\r\n    }\r\n}\r\n',
    '{"hooks": {"Stop": [], "$gate": [$theirs, $theirs]}}\n',
]


@pytest.mark.parametrize("style", STYLES)
def test_taken_out_again_every_byte_is_as_before(agent, folder, style):
    one = theirs(agent)["hooks"][dialect(agent).gate][0]
    text = style.replace("$gate", dialect(agent).gate).replace("$theirs", json.dumps(one))
    path = files.settings_file(agent, "project", folder)
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    put(agent, folder)
    put(agent, folder, command=door("/new"))
    assert tree(folder) != {str(path.relative_to(folder)): text.encode()}
    take_out(agent, folder)
    assert tree(folder) == {str(path.relative_to(folder)): text.encode()}


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5).filter(
    lambda name: name not in ("hooks", "statusLine", "version", "disableAllHooks")
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
their_hooks = st.lists(
    st.builds(
        lambda matcher, commands: {
            "matcher": matcher,
            "hooks": [{"type": "command", "command": c} for c in commands],
        },
        names,
        st.lists(names, max_size=2),
    ),
    max_size=2,
)


@given(
    st.dictionaries(names, values, max_size=4),
    st.dictionaries(
        st.sampled_from(["PreToolUse", "Stop", "Notification", "SessionStart"]), their_hooks, max_size=3
    ),
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.booleans(),
)
@settings(max_examples=examples(25))
def test_whatever_else_is_in_the_file_survives(tmp_path_factory, others, hooks, indent, first):
    folder = tmp_path_factory.mktemp("work")
    document = ({"hooks": hooks} | others) if first else (others | {"hooks": hooks})
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    path = files.settings_file("claude-code", "project", folder)
    files.write(path, text, 0o600)
    put("claude-code", folder)
    after = files.document("claude-code", path.read_text())
    assert {key: value for key, value in after.items() if key not in ("hooks", "statusLine")} == others
    for event, items in hooks.items():
        assert after["hooks"][event][: len(items)] == items
    take_out("claude-code", folder)
    assert path.read_text() == text


def test_what_was_added_after_us_stays_when_we_go(agent, folder):
    path = files.settings_file(agent, "project", folder)
    put(agent, folder)
    extra = ("description",) if agent == "codex" else ("mine",)
    path.write_text(jsontext.set_member(path.read_text(), extra, "kept"))
    one = theirs(agent)["hooks"][dialect(agent).gate][0]
    path.write_text(jsontext.insert_item(path.read_text(), ("hooks", dialect(agent).gate), one))
    take_out(agent, folder)
    left = jsontext.parse(path.read_text())
    left.pop("version", None)
    assert left == {"hooks": {dialect(agent).gate: [one]}, extra[0]: "kept"}


def test_a_group_shared_with_others_keeps_theirs(folder):
    path = files.settings_file("claude-code", "project", folder)
    put("claude-code", folder)
    text = path.read_text()
    path.write_text(
        jsontext.insert_item(
            text, ("hooks", "PreToolUse", 0, "hooks"), {"type": "command", "command": "mine"}
        )
    )
    put("claude-code", folder)
    groups = jsontext.parse(path.read_text())["hooks"]["PreToolUse"]
    assert [len(group["hooks"]) for group in groups] == [1, 1]
    assert groups[0]["hooks"][0]["command"] == "mine"
    take_out("claude-code", folder)
    assert jsontext.parse(path.read_text())["hooks"] == {"PreToolUse": [groups[0]]}


def test_a_double_registration_becomes_one(agent, folder):
    path = files.settings_file(agent, "project", folder)
    put(agent, folder)
    once = path.read_text()
    gate = dialect(agent).gate
    copy = jsontext.parse(once)["hooks"][gate][0]
    path.write_text(jsontext.insert_item(once, ("hooks", gate), copy))
    put(agent, folder)
    assert path.read_text() == once


def test_an_event_we_no_longer_want_is_taken_out(folder):
    path = files.settings_file("claude-code", "project", folder)
    put("claude-code", folder)
    once = path.read_text()
    copy = jsontext.parse(once)["hooks"]["Stop"][0]
    path.write_text(jsontext.insert_item(once, ("hooks", "Notification"), copy))
    put("claude-code", folder)
    assert path.read_text() == once


@pytest.mark.parametrize(
    "text",
    ['{"hooks": {"Stop": [{"hooks": [{"type": "nope"}]}]}}', '{"a": ', '{"hooks": 1}', "{} // a", "[]"],
)
def test_a_file_the_agent_cannot_read_is_never_written(folder, text):
    path = files.settings_file("claude-code", "project", folder)
    files.write(path, text, 0o600)
    for attempt in (put, take_out):
        with pytest.raises(ConfigError, match="Nothing was changed"):
            attempt("claude-code", folder)
    assert tree(folder) == {".claude/settings.json": text.encode()}
    assert os.listdir(path.parent) == ["settings.json"]


@pytest.mark.invariant("what we write is a file the agent reads")
def test_what_we_write_is_a_file_the_agent_reads(folder):
    """Codex takes no negative number of seconds, and would drop every hook of the file."""
    with pytest.raises(ConfigError, match="Nothing was changed"):
        put("codex", folder, wait=-100)
    assert tree(folder) == {}


def backups(folder):
    return [path for path in folder.rglob("*") if install.BACKUP in path.name]


def test_a_backup_is_made_of_what_was_there_and_of_nothing_else(folder):
    put("gemini-cli", folder)
    assert backups(folder) == []
    take_out("gemini-cli", folder)
    path = files.settings_file("gemini-cli", "project", folder)
    files.write(path, '{"a": 1}', 0o600)
    path.chmod(0o640)
    put("gemini-cli", folder)
    (backup,) = backups(folder)
    assert backup.read_text() == '{"a": 1}'
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    assert not backup.name.endswith(".json")


def test_backups_within_a_second_do_not_overwrite_each_other(folder):
    path = files.settings_file("codex", "project", folder)
    files.write(path, "{}", 0o600)
    for number in range(4):
        put("codex", folder, command=door(f"/{number}"))
    assert len(backups(folder)) == 4


def test_a_file_that_changed_after_planning_is_left_alone(folder):
    plan = install.plan("codex", "project", folder, command=OURS)
    path = files.settings_file("codex", "project", folder)
    files.write(path, "{}", 0o600)
    with pytest.raises(InputError, match="changed meanwhile"):
        install.apply(plan)
    assert tree(folder) == {".codex/hooks.json": b"{}"}


def test_a_link_to_the_settings_stays_a_link(folder, home):
    real = home / "dotfiles.json"
    real.write_text("{}")
    path = files.settings_file("gemini-cli", "project", folder)
    path.parent.mkdir()
    path.symlink_to(real)
    put("gemini-cli", folder)
    assert path.is_symlink()
    assert "BeforeTool" in real.read_text()
    take_out("gemini-cli", folder)
    assert path.is_symlink()
    assert real.read_text() == "{}"


def test_the_users_own_file_is_private(home):
    put("claude-code", None, scope="user")
    path = home / ".claude" / "settings.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (home / ".claude" / "skills" / "planning" / "SKILL.md").exists()
    take_out("claude-code", None, scope="user")
    assert os.listdir(home / ".claude") == []


def test_an_unknown_scope_or_agent_is_refused(folder):
    with pytest.raises(InputError, match="neither user nor project"):
        install.plan("codex", "world", folder, command=OURS)
    with pytest.raises(InputError, match="not an agent we know"):
        install.plan("emacs", "user", folder, command=OURS)


def test_a_folder_that_cannot_be_written_is_named(folder):
    (folder / ".codex").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"):
        put("codex", folder)


# Status line, skills, notes


def settings_of(folder):
    return jsontext.parse(files.settings_file("claude-code", "project", folder).read_text())


def test_a_status_line_comes_and_goes_with_us(folder):
    put("claude-code", folder)
    assert settings_of(folder)["statusLine"]["command"].endswith("claude-code status 2")


@pytest.mark.parametrize("where", ["project", "user"])
def test_a_status_line_of_the_users_own_stays(folder, where):
    own = '{"statusLine": {"type": "command", "command": "mine"}}'
    files.write(files.settings_file("claude-code", where, folder), own, 0o600)
    plan = put("claude-code", folder)
    assert any("status line of your own" in warning for warning in plan.warnings)
    assert settings_of(folder).get("statusLine") == (
        {"type": "command", "command": "mine"} if where == "project" else None
    )


def test_phase_commands_are_installed_and_only_people_can_call_them(folder):
    put("claude-code", folder)
    for phase in ("planning", "building", "auditing"):
        text = (folder / ".claude" / "skills" / phase / "SKILL.md").read_text()
        assert f"name: {phase}\n" in text
        assert "disable-model-invocation: true\n" in text
        assert f"**{phase}**" in text


def test_a_skill_of_the_users_own_stays(folder):
    own = folder / ".claude" / "skills" / "planning" / "SKILL.md"
    files.write(own, "my planning", 0o600)
    plan = put("claude-code", folder)
    assert any(str(own) in warning for warning in plan.warnings)
    take_out("claude-code", folder)
    assert tree(folder) == {".claude/skills/planning/SKILL.md": b"my planning"}


def test_an_edited_skill_of_ours_is_kept_as_a_backup(folder):
    put("claude-code", folder)
    skill = folder / ".claude" / "skills" / "planning" / "SKILL.md"
    skill.write_text(skill.read_text() + "and my own words\n")
    take_out("claude-code", folder)
    (backup,) = backups(folder)
    assert backup.read_text().endswith("and my own words\n")
    assert tree(folder) == {}


def test_a_person_is_told_what_installing_does_not_do(folder):
    def notes(agent, scope="project"):
        return " ".join(install.plan(agent, scope, folder, command=OURS).notes)

    assert "/hooks" in notes("codex")
    assert "we have not run it" in notes("cursor")
    assert "version control" not in notes("claude-code")
    (folder / ".git").mkdir()
    assert "version control" in notes("claude-code")
    assert "version control" not in notes("claude-code", "user")
    assert install.plan("codex", "user", folder, command=OURS).phase == "building"
    assert install.plan_removal("codex", "user", folder).phase == ""


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude-code", '{"disableAllHooks": true}'),
        ("gemini-cli", '{"hooksConfig": {"enabled": false}}'),
        ("gemini-cli", '{"hooksConfig": {"disabled": ["checkrein"]}}'),
    ],
)
def test_switched_off_hooks_are_warned_about(folder, agent, text):
    files.write(files.settings_file(agent, "project", folder), text, 0o600)
    assert any("run" in warning for warning in install.plan(agent, "project", folder, command=OURS).warnings)


def test_a_wrapped_client_is_pointed_out_and_left_alone(folder):
    line = "sh -c 'checkrein-hook /door claude-code gate 350'"
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}})
    files.write(files.settings_file("claude-code", "project", folder), text, 0o600)
    plan = put("claude-code", folder)
    assert any("in a way we do not know" in warning for warning in plan.warnings)
    assert settings_of(folder)["hooks"]["Stop"][0]["hooks"][0]["command"] == line


def test_hooks_in_two_places_are_pointed_out(agent, folder):
    put(agent, folder, scope="user")
    twice = any("judged twice" in warning for warning in put(agent, folder).warnings)
    assert twice is (agent not in ("claude-code", "gemini-cli"))
