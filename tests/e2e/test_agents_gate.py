"""Codex, Gemini CLI and Copilot CLI under our hooks: what is judged, reported, refused and written down."""

import json
import os
import signal
import time

import pytest

from e2e.clients.every import AGENTS, hooks_of
from e2e.clients.processes import is_alive
from patience import until

CURL = "curl https://example.com/pay"
MADE = "touch made"


@pytest.fixture(params=AGENTS)
def client(request, house):
    """The agent before anything of ours is installed."""
    return AGENTS[request.param](house)


@pytest.fixture
def agent(client, house):
    """The agent in a project with our hooks."""
    house.install(client.agent)
    return client


@pytest.fixture
def made(house):
    return house.project / "made"


def let(house, *tools):
    for tool in tools:
        house.checkrein("rules", "add", "allow", "--tool", tool)


def test_a_refused_call_does_not_run_and_the_model_reads_why(agent, house, made):
    house.checkrein("rules", "add", "deny", "--tool", "Bash", "--reason", "not in this house")
    ran = agent.run(agent.shell(MADE))
    assert ran[0].answered and "not in this house" in ran[0].told
    assert not made.exists()
    (found,) = house.entries()
    assert (found["tool_name"], found["verdict"], found["result"]) == ("Bash", "deny", "denied")
    assert found["id"] in ran[0].told


def test_a_refusal_tells_what_why_and_what_helps(agent):
    told = agent.run(agent.shell(CURL))[0].told
    assert "Risk: critical. Decision: blocked" in told
    assert "example.com" in told and "What helps:" in told
    # Nothing of how we are called reaches the model.
    assert "checkrein-hook" not in told and "exit 2" not in told


def test_an_allowed_call_runs_and_how_it_ended_is_recorded(agent, house, made):
    let(house, "Bash")
    ran = agent.run(agent.shell(MADE), agent.shell("cat no-such-file"))
    assert made.exists()
    assert "No such file" in ran[1].told
    good, bad = house.entries()
    assert (good["verdict"], good["result"]) == ("allow", agent.succeeded)
    assert (bad["verdict"], bad["result"]) == ("allow", agent.failed)
    assert good["completed_at"] and bad["completed_at"]
    if agent.failed == "failure":
        assert good["trust_score_after"] > good["trust_score_before"]
        assert bad["trust_score_after"] < bad["trust_score_before"]
    else:
        # INVARIANT: nothing is earned by a call nobody knows the end of.
        assert good["trust_score_after"] in (None, good["trust_score_before"])
    assert house.verifies()


def test_every_tool_is_judged_under_its_common_name(agent, house):
    new = house.project / "src" / "new.py"
    let(house, agent.writes, "echo")
    ran = agent.run(
        agent.shell("ls src"),
        agent.write(new, "y = 1\n"),
        agent.demo("echo", text="heard you"),
        agent.demo("boom"),
    )
    found = house.entries()
    assert [each["tool_name"] for each in found] == [
        "Bash",
        agent.writes,
        "mcp__demo__echo",
        "mcp__demo__boom",
    ]
    assert [each["verdict"] for each in found] == ["allow", "allow", "allow", "ask"]
    assert [each["result"] for each in found[:3]] == [agent.succeeded, "success", "success"]
    assert new.read_text() == "y = 1\n"
    assert "heard you" in ran[2].told
    assert "nobody can be reached" in ran[3].told
    assert {each["agent"] for each in found} == {agent.agent}
    assert house.verifies()


def test_calls_of_one_turn_are_judged_one_by_one(agent, house):
    ran = agent.run(
        [agent.shell("ls src"), agent.shell(CURL), agent.shell("cat no-such-file"), agent.shell("pwd")]
    )
    assert "app.py" in ran[0].told and "example.com" in ran[1].told and str(house.project) in ran[3].told
    found = sorted((each["verdict"], each["result"]) for each in house.entries())
    wanted = [
        ("allow", agent.succeeded),
        ("allow", agent.succeeded),
        ("allow", agent.failed),
        ("deny", "denied"),
    ]
    assert found == sorted(wanted)
    assert house.verifies()


def test_ten_calls_are_ten_entries_of_one_session(agent, house):
    ran = agent.run(*[agent.shell("ls"), agent.shell(CURL)] * 5)
    found = house.entries()
    assert [each["verdict"] for each in found] == ["allow", "deny"] * 5
    assert all(each["id"] in used.told for each, used in zip(found[1::2], ran.tools[1::2], strict=True))
    (session,) = {each["session_id"] for each in found}
    kinds = [each["kind"] for each in house.records()]
    assert (kinds.count("session_started"), kinds.count("session_ended")) == (1, 1)
    assert {each["data"]["session"] for each in house.records("session_started")} == {session}
    assert "unjudged" not in kinds
    assert house.verifies()


def test_installed_for_the_user_it_holds_in_every_project(client, house, made):
    house.checkrein("install", client.agent, "--user")
    assert not list(house.project.rglob("*checkrein*"))
    house.checkrein("rules", "add", "deny", "--tool", "Bash", "--reason", "not in this house")
    ran = client.run(client.shell(MADE))
    assert "not in this house" in ran[0].told
    assert not made.exists()
    assert len(house.entries()) == 1


def test_taken_out_again_nothing_of_ours_is_left(client, house, made):
    before = files_in(house.project, client.home)
    house.install(client.agent)
    house.checkrein("rules", "add", "deny", "--tool", "Bash")
    house.checkrein("uninstall", client.agent)
    assert files_in(house.project, client.home) == before
    client.run(client.shell(MADE))
    assert made.exists()
    assert house.entries() == []


def test_the_phase_a_person_set_holds(agent, house, made):
    house.checkrein("phase", "auditing")
    ran = agent.run(
        agent.shell(MADE), agent.write(house.project / "src" / "new.py", "y\n"), agent.shell("ls")
    )
    assert "auditing" in ran[0].told and "auditing" in ran[1].told and "README.md" in ran[2].told
    assert [each["stage"] for each in house.entries()][:2] == ["phase", "phase"]
    assert not made.exists() and not (house.project / "src" / "new.py").exists()


def test_a_broken_settings_file_blocks_every_call_and_says_so(agent, house, made):
    path = house.settings("[trust\ninitial_score = ")
    ran = agent.run(agent.shell(MADE), agent.shell("ls"))
    for used in ran.tools:
        assert str(path) in used.told and "blocked" in used.told, used.told
    assert not made.exists()
    assert [each["decision"] for each in house.entries()] == ["blocked", "blocked"]


def test_a_killed_server_is_started_again_by_the_next_call(agent, house):
    first = house.server()

    def kill():
        os.kill(first, signal.SIGKILL)
        until(lambda: not is_alive(first))
        return {"tools": [agent.shell("ls src")]}

    ran = agent.run(agent.shell("ls"), kill, agent.shell(CURL))
    assert "app.py" in ran[1].told and "example.com" in ran[2].told
    assert [each["verdict"] for each in house.entries()] == ["allow", "allow", "deny"]
    assert house.server() != first
    assert house.verifies()


def test_a_server_that_hangs_is_a_no_within_seconds(agent, house, made):
    let(house, "Bash")
    began = []

    def stop():
        os.kill(house.server(), signal.SIGSTOP)
        began.append(time.monotonic())
        return {"tools": [agent.shell(MADE)]}

    def go_on():
        began.append(time.monotonic())
        os.kill(house.servers()[-1], signal.SIGCONT)
        return {"text": "done"}

    ran = agent.run(agent.shell("ls"), stop, go_on)
    assert "Checkrein" in ran[1].told and not made.exists(), ran[1].told
    assert 9 < began[1] - began[0] < 14
    assert house.verifies()


def test_a_hook_program_that_is_gone_blocks(agent, house, made):
    let(house, "Bash")
    path = hooks_of(agent, house)
    text = path.read_text()
    assert "/checkrein-hook" in text and "|| exit 2" in text
    path.write_text(text.replace("/checkrein-hook", "/no-such-hook"))
    agent.run(agent.shell(MADE))
    assert not made.exists()
    assert house.entries() == []


def test_a_door_that_is_gone_blocks(agent, house, made):
    let(house, "Bash")
    house.checkrein("down")
    house.door.unlink()
    ran = agent.run(agent.shell(MADE))
    assert "Checkrein" in ran[0].told, ran[0].told
    assert not made.exists()


def test_the_doctor_is_content_with_what_was_installed(agent, house):
    if agent.agent == "codex":
        pytest.skip("a person trusts the hooks first: test_codex.py")
    said = json.loads(house.checkrein("doctor", agent.agent, "--json"))
    assert said["ok"]


def files_in(*folders):
    found = [path for folder in folders for path in folder.rglob("*") if ".git" not in path.parts]
    return {path: path.read_bytes() for path in found if path.is_file()}
