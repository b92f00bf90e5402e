import json
import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest

from checkrein import runtime
from checkrein.cli import checks
from checkrein.settings.sources import config_dir, state_dir
from checkrein.store.agents import Session, put_session
from checkrein.store.sqlite import FILE


def only(found):
    (each,) = found
    return each


def by_name(found):
    return {each.name: each for each in found}


def test_the_client_is_there():
    assert only(checks.client()).ok


def test_a_client_that_is_gone_is_named(monkeypatch):
    monkeypatch.setattr(checks, "client_words", lambda: ["/nowhere/checkrein-hook"])
    found = only(checks.client())
    assert not found.ok
    assert "/nowhere/checkrein-hook" in found.text


def test_the_server_answers_with_our_version(server, monkeypatch):
    found = only(checks.server())
    assert found.ok
    assert str(server.pid) in found.text
    monkeypatch.setattr(checks, "__version__", "99.0")
    assert "restart" in only(checks.server()).remedy


def test_a_door_file_that_is_wrong_is_named(server):
    assert only(checks.door()).ok
    path = runtime.door_file()
    good = path.read_text()
    path.chmod(0o644)
    assert "chmod 600" in only(checks.door()).remedy
    path.chmod(0o600)
    path.write_text(good.replace(runtime.read_door().python, "/nowhere/python"))
    assert "/nowhere/python" in only(checks.door()).text
    path.unlink()
    assert not only(checks.door()).ok
    path.write_text(good)


def test_folders_open_to_others_are_named(server):
    assert all(each.ok for each in checks.folders())
    folder = runtime.socket_path().parent
    folder.chmod(0o755)
    found = by_name(checks.folders())["runtime folder"]
    assert not found.ok
    assert "chmod" in found.remedy
    folder.chmod(0o700)
    assert stat.S_ISSOCK(os.stat(runtime.socket_path()).st_mode)


def test_without_a_server_the_socket_is_missing(run):
    runtime.write_door()
    assert not by_name(checks.folders())["socket"].ok


def test_settings_nobody_can_use_are_named(project, user_settings):
    assert only(checks.settings({project})).ok
    user_settings("[trust]\nhibernation_dys = 1")
    assert "hibernation_dys" in only(checks.settings({project})).text


def test_the_settings_of_every_installed_project_are_looked_at(run, server, project, tmp_path):
    run("install", "claude-code")
    Path(project, "checkrein.toml").write_text("x = [")
    found = [each for each in checks.findings(str(tmp_path), None) if each.name == "settings"]
    assert sorted(each.ok for each in found) == [False, True]


def test_no_installation_at_all_is_a_problem():
    assert "checkrein install claude-code" in only(checks.registered(None)).remedy
    assert "of Codex" in only(checks.registered("codex")).text


@pytest.fixture
def installed(run, server, project):
    run("install", "claude-code")
    return Path(project, ".claude", "settings.json")


def test_a_whole_installation_is_good(installed):
    assert [each.ok for each in checks.registered(None)] == [True, True]


def test_a_missing_hook_and_a_gate_that_is_gone_are_named(installed, project):
    settings = json.loads(installed.read_text())
    del settings["hooks"]["PostToolUse"]
    installed.write_text(json.dumps(settings))
    registration, gate = checks.registered("claude-code")
    assert "PostToolUse is missing" in registration.text
    assert project in registration.remedy
    assert gate.ok
    del settings["hooks"]["PreToolUse"]
    installed.write_text(json.dumps(settings))
    _, gate = checks.registered("claude-code")
    assert "no gate of ours" in gate.text
    installed.write_text("{ broken")
    assert not any(each.ok for each in checks.registered("claude-code"))


def test_hooks_that_are_switched_off_are_named(installed):
    settings = json.loads(installed.read_text())
    installed.write_text(json.dumps({**settings, "disableAllHooks": True}))
    assert any("disableAllHooks" in each.text for each in checks.registered(None) if not each.ok)


def test_codex_hooks_nobody_trusts_are_named(run, server):
    run("install", "codex", "--user")
    found = {each.name: each.text for each in checks.registered("codex") if not each.ok}
    assert "/hooks" in found["codex (user) active"]
    assert "unified_exec_tty" in found["codex (user) typing"]


def test_calls_without_a_verdict_are_counted(pipeline, clock, monkeypatch):
    monkeypatch.setattr(checks.time, "time", clock)
    pipeline.note("unjudged", {"tool": "Bash"})
    clock.pass_days(2)
    assert only(checks.unjudged()).ok
    pipeline.note("unjudged", {"tool": "Bash"})
    assert "1 call(s) ran without a verdict" in only(checks.unjudged()).text


def test_reports_nobody_could_read_are_named():
    assert only(checks.spooled()).ok
    folder = runtime.private_folder(runtime.spool_dir())
    (folder / "1.000000000-1.unreadable").write_text("?")
    assert "could not be read" in only(checks.spooled()).text


def test_a_record_that_does_not_verify_is_named(pipeline):
    pipeline.note("test", {"a": 1})
    pipeline.close()
    assert "2 record(s) verify" in only(checks.ledger()).text
    with sqlite3.connect(state_dir() / FILE) as database:
        database.executescript(
            "DROP TRIGGER record_no_update; UPDATE record SET body = replace(body, '\"a\":1', '\"a\":2')"
        )
    database.close()
    assert not only(checks.ledger()).ok


def test_a_check_that_cannot_be_made_is_a_finding_too(server, project, monkeypatch):
    from checkrein.errors import StoreError

    def fail():
        raise StoreError("The disk is gone.", remedy="Find it.")

    monkeypatch.setattr(checks, "unjudged", fail)
    found = by_name(checks.findings(project, None))
    assert (found["judged calls"].ok, found["judged calls"].remedy) == (False, "Find it.")
    assert found["record"].ok


def test_agents_nobody_can_tell_are_named(pipeline, monkeypatch):
    assert "known by its process" in only(checks.strangers()).text
    for number, started in enumerate(("", "123")):
        met = Session(
            agent="codex",
            id=f"s{number}",
            project="",
            started_at=time.time(),
            process=7 if started else 0,
            process_started=started,
        )
        pipeline.store.write(lambda tx, met=met: put_session(tx, met))
    assert "1 session(s) of codex" in only(checks.strangers()).text


def providers(text):
    file = config_dir() / "providers.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)


def test_without_providers_nothing_is_said_of_models(home):
    assert list(checks.models()) == []


def test_a_providers_file_that_cannot_be_read_is_a_problem(home):
    providers("{")
    found = only(checks.models())
    assert not found.ok
    assert "providers.json" in found.text


def test_a_provider_whose_key_is_gone_is_named_and_one_that_is_off_is_not(home):
    spec = {"kind": "openai", "key": "${env:NO_SUCH_KEY}", "models": ["m"]}
    providers(json.dumps({"providers": {"work": spec, "old": {**spec, "enabled": False}}}))
    found = only(checks.models())
    assert not found.ok
    assert found.text.startswith("work: ")
    assert "NO_SUCH_KEY" in found.text
    assert "checkrein chat providers add work" in found.remedy
