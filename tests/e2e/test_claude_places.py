"""Every way our hooks get into Claude Code and out again: the project's settings, the user's, a plugin."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

import checkrein
from checkrein import hookclient
from checkrein.speakers import RegisteredClients
from e2e.clients import demo
from e2e.clients.claude import Claude, bash, settings_of

ROOT = Path(__file__).parents[2]
LS, CURL = bash("ls"), bash("curl https://example.com/pay")


def verdicts(house, ran):
    return [house.entry(used.id)["verdict"] for used in ran.tools]


def test_the_users_own_settings_guard_every_project(house):
    claude = Claude(house)
    house.checkrein("install", claude.agent, "--user")
    assert not settings_of(house.project).exists()
    assert verdicts(house, claude.run(LS, CURL)) == ["allow", "deny"]
    house.project = house.root / "another"
    house.file("README.md", "# Another\n")
    assert verdicts(house, claude.run(LS, CURL)) == ["allow", "deny"]
    assert len({each["project"] for each in house.entries()}) == 2


def test_the_users_and_the_projects_hooks_judge_a_call_once(claude, house):
    house.checkrein("install", claude.agent, "--user")
    ran = claude.run(LS, CURL)
    assert verdicts(house, ran) == ["allow", "deny"]
    assert len(house.entries()) == 2


def test_a_plugin_guards_as_well_and_brings_the_phases(house):
    claude = Claude(house)
    folder = house.root / "plugin"
    house.checkrein("plugin", folder)
    house.checkrein("phase", "building")
    plugged = {"args": ("--plugin-dir", str(folder))}
    assert verdicts(house, claude.run(LS, CURL, **plugged)) == ["allow", "deny"]
    ran = claude.run(bash("touch made"), prompt="/checkrein:auditing MAIN go", **plugged)
    found = house.entry(ran[0].id)
    assert (found["verdict"], found["stage"]) == ("deny", "phase")


def test_the_doctor_finds_nothing_wrong_with_a_fresh_installation(claude, house):
    house.checkrein("doctor", "claude-code")
    assert not claude.run(LS)[0].failed
    house.checkrein("doctor", "claude-code")


def test_uninstalled_the_client_is_what_it_was_before(claude, house):
    house.checkrein("uninstall", claude.agent, "--project")
    assert not settings_of(house.project).exists()
    ran = claude.run(LS)
    assert not ran[0].failed
    assert house.entries() == []


def test_hooks_of_the_users_own_stay_and_run(house):
    seen = house.root / "seen"
    mine = {"matcher": "Bash", "hooks": [{"type": "command", "command": f"touch {seen}"}]}
    house.file(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [mine]}}))
    claude = Claude(house)
    house.install(claude.agent)
    assert verdicts(house, claude.run(LS, CURL)) == ["allow", "deny"]
    assert seen.exists()


def test_the_compiled_client_does_the_same(claude, house):
    """A wheel brings it; a checkout runs its twin in Python."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    program = house.root / hookclient.PROGRAM
    words = build.arguments(ROOT / "src/checkrein/hookclient/client.c", program, checkrein.__version__)
    if not any(build.run([*compiler, *words], may_fail=True) for compiler in build.local_compilers()):
        pytest.skip("no C compiler here")
    settings = settings_of(house.project)
    text = settings.read_text()
    (before,) = {line.split(str(house.door))[0] for line in text.split('"command": "')[1:]}
    settings.write_text(text.replace(before, f"{program} "))
    RegisteredClients(house.state).register([str(program)])
    house.checkrein("down")
    with house.inbox():
        going = claude.begin(LS, CURL, bash("touch made"), bash("cat no-such-file"))
        house.checkrein("approve", house.question()["id"])
        ran = going.result()
    assert verdicts(house, ran) == ["allow", "deny", "ask", "allow"]
    assert [house.entry(used.id)["result"] for used in ran.tools] == [
        "success",
        "denied",
        "success",
        "failure",
    ]
    assert (house.project / "made").exists()


def test_tools_of_an_mcp_server_are_judged_by_their_server_and_name(claude, house):
    servers = {"mcpServers": {"demo": {"command": shutil.which("python3"), "args": [demo.__file__]}}}
    config = house.root / "mcp.json"
    config.write_text(json.dumps(servers))
    house.checkrein("rules", "add", "allow", "--server", "demo", "--tool", "echo")
    house.checkrein("rules", "add", "deny", "--server", "demo", "--tool", "boom", "--reason", "not that one")
    echo = {"name": "mcp__demo__echo", "input": {"text": "hello there"}}
    boom = {"name": "mcp__demo__boom", "input": {}}
    ran = claude.run(echo, boom, args=("--mcp-config", str(config)))
    assert verdicts(house, ran) == ["allow", "deny"]
    assert "hello there" in ran[0].told and "not that one" in ran[1].told
    assert house.entry(ran[0].id)["server"] == "demo"


def test_a_worktree_is_guarded_and_belongs_to_the_project(claude, house):
    """Its own copy of the project holds no settings of ours."""
    job = {
        "description": "Look around",
        "prompt": "SUBJOB look around",
        "subagent_type": "general-purpose",
        "isolation": "worktree",
    }
    with house.agreeable():
        ran = claude.run(
            {"name": "EnterWorktree", "input": {"name": "side"}},
            bash("pwd"),
            CURL,
            {"name": "Agent", "input": job},
            agents={"SUBJOB": [{"tools": [bash("pwd")]}, {"tools": [CURL]}]},
        )
    assert not ran[0].failed, ran[0].told
    told = {used.id: used.told for used in ran.tools if used.input.get("command") == "pwd"}
    assert len(told) == 2 and all(".claude/worktrees/" in text for text in told.values())
    blocked = [used for used in ran.tools if "curl" in str(used.input)]
    assert len(blocked) == 2 and all(house.entry(used.id)["verdict"] == "deny" for used in blocked)
    assert {each["project"] for each in house.entries()} == {str(house.project)}


def test_a_resumed_session_is_guarded_and_remembers_its_phase(claude, house):
    first = claude.run(LS, prompt="/auditing MAIN go")
    said = [{"text": "already said"}] * 2
    again = claude.run(*said, bash("touch made"), CURL, args=("--resume", first.session))
    assert again.session == first.session
    assert [house.entry(used.id)["stage"] for used in again.tools] == ["phase", "floor"]
    assert not (house.project / "made").exists()


def test_a_session_begun_by_an_agent_switches_no_phase(claude, house):
    """The model runs the agent again and has it type the command."""
    house.file("tool.sh", f"#!/bin/sh\n{claude.program} -p '/auditing SUBJOB' > said 2>&1\n").chmod(0o755)
    with house.agreeable():
        claude.run(bash("./tool.sh"), agents={"SUBJOB": [{"text": "well"}]})
    said = (house.project / "said").read_text()
    refused = {each["data"]["request"] for each in house.records("request_refused")}
    assert "phase.set" in refused, said
    assert [each["data"]["phase"] for each in house.records("phase_changed")] == ["building"]
