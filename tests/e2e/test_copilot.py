"""What only Copilot CLI does: its own dialog, background commands, sub-agents, `/auditing` as a prompt."""

import json

import pytest

from e2e.clients.agent import Sitting
from e2e.clients.copilot import Copilot
from patience import until

MADE = "touch made"
DIALOG = "Do you want to allow this tool call?"
OPEN = ("-i", "go", "--disable-client-telemetry", "--allow-all-tools")


@pytest.fixture
def copilot(house):
    found = Copilot(house)
    house.install(found.agent)
    return found


@pytest.fixture
def made(house):
    return house.project / "made"


def sit(copilot, *calls):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    return Sitting(copilot, calls, OPEN)


def test_its_dialog_shows_our_reason_and_its_yes_is_recorded(copilot, house, made):
    with sit(copilot, copilot.shell(MADE)) as screen:
        screen.shows(DIALOG, "Checkrein asks", "medium risk")
        assert not made.exists()
        screen.type("1")
        until(made.exists)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["verdict"], found["answer"], found["channel"]) == ("ask", "approved", "agent")
    assert found["result"] == "success"
    assert house.verifies()


def test_a_no_in_its_dialog_is_recorded_and_nothing_runs(copilot, house, made):
    with sit(copilot, copilot.shell(MADE)) as screen:
        screen.shows(DIALOG)
        screen.type("2")
        screen.shows("❯ 2. No")
        screen.type("not now")
        screen.shows("❯ 2. not now")
        screen.type("\r")
        screen.no_longer_shows(DIALOG)
        until(lambda: house.json("inbox") == [])
    assert not made.exists()
    (found,) = house.entries()
    assert found["answer"] != "approved" and found["result"] != "success"


def test_an_allowed_call_runs_where_it_would_have_asked_itself(copilot, house, made):
    """Headless without `--allow-all-tools` it refuses what it would ask about; our yes stands in."""
    house.checkrein("rules", "add", "allow", "--tool", "Bash")
    copilot.words = lambda prompt, url: ["-p", prompt, "--disable-client-telemetry"]
    copilot.run(copilot.shell(MADE))
    assert made.exists()
    assert house.entries()[0]["result"] == "success"


@pytest.mark.parametrize(
    "flags", [[], ["--allow-all-tools", "--deny-tool=shell"]], ids=["its prompt", "its rule"]
)
def test_an_earned_call_does_not_overrule_its_own_checks(copilot, house, made, flags):
    """An allow of a hook would run the call even against `--deny-tool`."""
    old = house.home / "trust-scores.json"
    old.write_text(json.dumps({"score": 0.95, "successes": 300, "failures": 0}))
    house.checkrein("trust", "import", old, "--yes")
    copilot.words = lambda prompt, url: ["-p", prompt, "--disable-client-telemetry", *flags]
    copilot.run(copilot.shell(MADE))
    assert not made.exists()
    assert (house.entries()[0]["verdict"], len(house.entries())) == ("allow", 1)


def test_a_typed_phase_command_holds_from_the_first_call_on(copilot, house, made):
    ran = copilot.run(copilot.shell(MADE), copilot.shell("ls"), prompt="/auditing")
    assert "auditing" in ran[0].told and "README.md" in ran[1].told
    assert house.entries()[0]["stage"] == "phase"
    assert not made.exists()
    (changed,) = house.records("phase_changed")[1:]
    assert changed["data"]["phase"] == "auditing" and changed["data"]["session"]
    assert house.json("phase")["name"] == "building"


def test_its_file_tools_have_their_common_names(copilot, house):
    for tool in ("Write", "Edit"):
        house.checkrein("rules", "add", "allow", "--tool", tool)
    path = str(house.project / "src" / "app.py")
    copilot.run(
        {"name": "view", "input": {"path": path}},
        {"name": "edit", "input": {"path": path, "old_str": "x = 1", "new_str": "x = 2"}},
        {"name": "glob", "input": {"pattern": "**/*.py"}},
        {"name": "grep", "input": {"pattern": "x = "}},
        {"name": "view", "input": {"path": str(house.project / "no-such-file")}},
    )
    found = [(each["tool_name"], each["result"]) for each in house.entries()]
    assert found == [
        ("Read", "success"),
        ("Edit", "success"),
        ("Glob", "success"),
        ("Grep", "success"),
        ("Read", "failure"),
    ]
    assert (house.project / "src" / "app.py").read_text() == "x = 2\n"


def test_a_failing_mcp_tool_has_failed(copilot, house):
    house.checkrein("rules", "add", "allow", "--server", "demo", "--pattern", "*")
    copilot.run(copilot.demo("boom"), copilot.demo("echo", text="heard you"))
    found = [(each["tool_name"], each["result"]) for each in house.entries()]
    assert found == [("mcp__demo__boom", "failure"), ("mcp__demo__echo", "success")]


def test_a_command_left_running_is_not_called_a_success(copilot, house):
    house.checkrein("rules", "add", "allow", "--tool", "Bash")
    waits = {"command": "sleep 3", "description": "waits", "mode": "async"}
    copilot.run({"name": "bash", "input": waits})
    (found,) = house.entries()
    assert (found["verdict"], found["result"]) == ("allow", "unknown")


def test_sub_agents_are_judged_too(copilot, house, made):
    house.checkrein("rules", "add", "allow", "--tool", "Agent")
    inside = [{"tools": [copilot.shell("ls src")]}, {"tools": [copilot.shell(MADE)]}]
    job = {
        "description": "Find files",
        "prompt": "SUBJOB find the files",
        "agent_type": "general-purpose",
        "name": "finder",
        "mode": "sync",
    }

    class Both(copilot.model):
        def __init__(self, turns):
            super().__init__(turns, {"SUBJOB": inside})

    copilot.model = Both
    copilot.run({"name": "task", "input": job})
    found = [(each["tool_name"], each["verdict"]) for each in house.entries()]
    assert found == [("Agent", "allow"), ("Bash", "allow"), ("Bash", "ask")]
    assert not made.exists()


def test_in_a_folder_nobody_trusted_the_doctor_says_so(copilot, house):
    (copilot.home / "config.json").write_text("{}")
    said = json.loads(house.run("checkrein", "doctor", copilot.agent, "--json", code=1).stdout)
    assert any("does not trust this folder" in each["text"] for each in said["checks"] if not each["ok"])
