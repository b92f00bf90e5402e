"""Claude Code under our hooks: what is judged, reported, refused and written down."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.clients import npm
from e2e.clients.claude import bash, edit, read, write

CURL = "curl https://example.com/pay"
WHEN = '[{"path": "command", "equals": "touch made"}]'


def test_ac_011_every_tool_call_meets_the_gate_first(claude, house):
    target = house.project / "src" / "app.py"
    ran = claude.run(
        read(target),
        bash("ls src"),
        edit(target, "x = 1", "x = 2"),
        write(house.project / "src" / "new.py", "y = 1\n"),
        {"name": "WebFetch", "input": {"url": "http://127.0.0.1:9/", "prompt": "what is it"}},
        {"name": "CronList", "input": {}},
    )
    judged = {each["call_id"]: each for each in house.entries()}
    assert set(judged) == {used.id for used in ran.tools}
    assert [judged[used.id]["tool_name"] for used in ran.tools] == [used.name for used in ran.tools]
    # What waits for a person has not happened.
    assert target.read_text() == "x = 1\n"
    assert not (house.project / "src" / "new.py").exists()
    assert house.verifies()


def test_ac_012_success_and_failure_are_both_reported(claude, house):
    ran = claude.run(bash("ls"), bash("cat no-such-file"))
    good, bad = (house.entry(used.id) for used in ran.tools)
    assert (good["result"], good["status"]) == ("success", "completed")
    assert good["output"]["stdout"].split() == ["README.md", "src"]
    assert (bad["result"], bad["outcome"]) == ("failure", "failure")
    assert good["trust_score_after"] > good["trust_score_before"]
    assert bad["trust_score_after"] == pytest.approx(bad["trust_score_before"] * 0.85)


def test_ac_013_the_trust_file_is_written_when_the_agent_stops(claude, house):
    claude.run(bash("ls"), bash("cat README.md"))
    (path,) = house.state.glob("trust/*/trust-scores.json")
    written = json.loads(path.read_text())
    earned = house.json("trust", "show")["domains"]["file_read"]
    assert written["version"] == "2"
    assert written["domains"]["file_read"]["score"] == pytest.approx(earned["score"])
    assert written["domains"]["file_read"]["successes"] == earned["successes"] == 2


def test_ac_014_a_broken_settings_file_blocks_every_call_and_says_so(claude, house):
    path = house.settings("[trust\ninitial_score = ")
    ran = claude.run(bash("ls"), read(house.project / "README.md"))
    for used in ran.tools:
        assert used.failed and str(path) in used.told and "blocked" in used.told, used.told
        assert house.entry(used.id)["decision"] == "blocked"


def test_ac_020_ten_calls_allowed_and_refused_are_ten_entries(claude, house):
    steps = [bash("ls"), bash(CURL)] * 5
    ran = claude.run(*steps)
    found = house.entries()
    assert [each["call_id"] for each in found] == [used.id for used in ran.tools]
    assert [each["verdict"] for each in found] == ["allow", "deny"] * 5
    lines = [line for path in house.state.glob("audit/**/*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == 10
    assert house.verifies()


def test_ac_024_planning_blocks_the_shell(claude, house):
    house.checkrein("phase", "planning")
    ran = claude.run(bash("./tool.sh"), read(house.project / "README.md"))
    assert "planning" in ran[0].told and "refused" in ran[0].told
    assert (house.entry(ran[0].id)["decision"], house.entry(ran[0].id)["stage"]) == ("blocked", "phase")
    assert "# App" in ran[1].told


def test_ac_025_auditing_blocks_writing(claude, house):
    house.checkrein("phase", "auditing")
    target = house.project / "src" / "new.py"
    ran = claude.run(write(target, "y = 1\n"), bash("touch made"), bash("ls"))
    assert [house.entry(used.id)["decision"] for used in ran.tools] == ["blocked", "blocked", "logged_only"]
    assert "auditing" in ran[0].told
    assert not target.exists() and not (house.project / "made").exists()


def test_ac_026_building_asks_before_the_shell_while_trust_is_low(claude, house):
    house.file("tool.sh", "#!/bin/sh\ntouch made\n").chmod(0o755)
    ran = claude.run(bash("./tool.sh"))
    found = house.entry(ran[0].id)
    assert (found["decision"], found["domains"]) == ("human_required", ["shell_exec"])
    assert not (house.project / "made").exists()


def test_ac_027_a_typed_phase_command_holds_from_the_first_call_on(claude, house):
    assert house.json("phase")["name"] == "building"
    ran = claude.run(bash("touch made"), bash("ls"), prompt="/auditing MAIN go")
    first = house.entry(ran[0].id)
    assert (first["decision"], first["stage"]) == ("blocked", "phase")
    assert "README.md" in ran[1].told
    (changed,) = house.records("phase_changed")[1:]
    assert (changed["data"]["phase"], changed["data"]["session"]) == ("auditing", ran.session)


def test_ac_027_the_model_cannot_switch_the_phase_itself(claude, house):
    house.checkrein("phase", "auditing")
    # Ours tells the client that only people may use it; a skill of the user's own may lack that.
    house.file(".claude/skills/building/SKILL.md", "---\nname: building\ndescription: Build\n---\nBuild.\n")
    ran = claude.run(
        {"name": "Skill", "input": {"skill": "planning"}},
        {"name": "Skill", "input": {"skill": "building"}},
        bash("touch made"),
    )
    assert all(used.failed for used in ran.tools)
    assert "Only a person switches the phase" in ran[1].told
    assert house.json("phase")["name"] == "auditing"
    assert {each["data"]["phase"] for each in house.records("phase_changed")} == {"building", "auditing"}
    assert house.entry(ran[2].id)["stage"] == "phase"
    assert not (house.project / "made").exists()


def test_ac_028_a_project_without_a_trust_file_starts_at_the_initial_score(claude, house):
    assert not list(house.state.glob("trust/*/*"))
    ran = claude.run(bash("ls"))
    assert house.entry(ran[0].id)["trust_score_before"] == 0.3
    assert house.json("trust", "show")["inherited"] == 0.3


def test_ac_029_the_next_session_starts_with_the_trust_of_the_last(claude, house):
    first = claude.run(bash("ls"), bash("ls src"))
    house.checkrein("down")
    second = claude.run(bash("ls"))
    assert first.session != second.session
    earned = house.entry(first[1].id)["trust_score_after"]
    assert earned > 0.3
    assert house.entry(second[0].id)["trust_score_before"] == pytest.approx(earned)


def test_ac_030_a_v1_trust_file_is_taken_over_and_kept_as_v2(claude, house):
    old = house.home / "trust-scores.json"
    old.write_text(json.dumps({"score": 0.45, "successes": 30, "failures": 2}))
    house.checkrein("trust", "import", old, "--yes")
    ran = claude.run(bash("ls"))
    assert house.entry(ran[0].id)["trust_score_before"] == 0.45
    (path,) = house.state.glob("trust/*/trust-scores.json")
    written = json.loads(path.read_text())
    assert (written["version"], written["domains"]["_global"]["score"]) == ("2", 0.45)


def test_ac_031_after_installing_the_hooks_fire_by_themselves(claude, house):
    house.checkrein("down")
    ran = claude.run(bash("ls"))
    assert [each["call_id"] for each in house.entries()] == [ran[0].id]
    kinds = [each["kind"] for each in house.records()]
    assert kinds[kinds.index("session_started") :] == [
        "session_started",
        "decided",
        "finished",
        "session_ended",
    ]


def test_ac_032_a_refusal_tells_the_model_what_why_and_what_helps(claude, house):
    ran = claude.run(bash(CURL))
    told = ran[0].told
    assert "Risk: critical. Decision: blocked" in told
    assert "example.com" in told and "What helps:" in told
    assert house.entries()[0]["id"] in told
    # Nothing of how we are called reaches the model.
    assert "checkrein-hook" not in told and "client.py" not in told and str(house.door) not in told


def test_ac_034_no_network_is_needed():
    """The same tests again where there is nothing but loopback."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare` to cut the network off")
    cut_off = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
    tried = subprocess.run([*cut_off, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"the network cannot be cut off here: {tried.stderr.strip()}")
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*cut_off, *again, "-k", "ac_011 or ac_012 or ac_020 or ac_029"],
        env=os.environ | {"REAL_CLIENTS": str(npm.folder())},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


def test_an_allowed_call_runs_where_the_client_itself_would_have_refused(claude, house):
    """Headless, the default mode refuses what it would ask about; our yes stands in for the answer."""
    house.checkrein("rules", "add", "allow", "--tool", "Bash", "--when", WHEN)
    ran = claude.run(bash("touch made"))
    assert not ran[0].failed, ran[0].told
    assert (house.project / "made").exists()
    assert ran.denials == []


@pytest.mark.parametrize("mode", ["acceptEdits", "auto", "dontAsk", "plan"])
def test_no_mode_of_the_client_outranks_us(claude, house, mode):
    target = house.project / "src" / "new.py"
    safe = bash("ls") | {"verdict": "not_flagged"}
    ran = claude.run(bash(CURL), write(target, "y = 1\n"), safe, mode=mode)
    assert [house.entry(used.id)["verdict"] for used in ran.tools] == ["deny", "ask", "allow"]
    assert [used.failed for used in ran.tools] == [True, True, False]
    assert not target.exists()


def test_a_list_of_allowed_tools_does_not_outrank_us(claude, house):
    ran = claude.run(bash(CURL), bash("touch made"), args=("--allowedTools", "Bash Write Edit"))
    assert [used.failed for used in ran.tools] == [True, True]
    assert not (house.project / "made").exists()


def test_calls_of_one_turn_are_judged_one_by_one(claude, house):
    ran = claude.run([bash("ls"), bash(CURL), bash("cat no-such-file"), read(house.project / "README.md")])
    found = {used.id: house.entry(used.id) for used in ran.tools}
    assert [found[used.id]["verdict"] for used in ran.tools] == ["allow", "deny", "allow", "allow"]
    assert found[ran[0].id]["result"] == found[ran[3].id]["result"] == "success"
    # Claude Code may call off the rest of a turn after a failure; nothing is counted that did not end.
    assert found[ran[2].id]["result"] in ("failure", "unknown")
    assert house.verifies()


def test_sub_agents_are_judged_and_get_the_model_their_task_deserves(claude, house):
    old = house.home / "trust-scores.json"
    old.write_text(json.dumps({"score": 0.45, "successes": 30, "failures": 0}))
    house.checkrein("trust", "import", old, "--yes")
    job = {"description": "Find files", "prompt": "SUBJOB find the files", "subagent_type": "Explore"}
    steps = [{"tools": [bash("ls src")]}, {"tools": [bash(CURL)]}, {"tools": [bash("touch made")]}]
    ran = claude.run({"name": "Agent", "input": job}, agents={"SUBJOB": steps})
    inside = [used for used in ran.tools if used.parent]
    assert [house.entry(used.id)["verdict"] for used in inside] == ["allow", "deny", "ask"]
    assert "example.com" in inside[1].told
    assert not (house.project / "made").exists()
    (routed,) = house.records("routed")
    assert (routed["data"]["model"], routed["data"]["applied"]) == ("haiku", True)
    asked = {each["model"] for each in ran.requests if "SUBJOB" in json.dumps(each["messages"][:1])}
    assert len(asked) == 1 and "haiku" in asked.pop()


def test_skipping_the_clients_own_questions_does_not_skip_ours(fearless, somebodys_house):
    house = somebodys_house
    ran = fearless.run(
        bash(CURL), write(house.project / "made.py", "x\n"), bash("ls"), mode="bypassPermissions"
    )
    assert [house.entry(used.id)["verdict"] for used in ran.tools] == ["deny", "ask", "allow"]
    assert "Checkrein" in ran[0].told and "Checkrein" in ran[1].told
    assert not (house.project / "made.py").exists()
    assert house.verifies()
