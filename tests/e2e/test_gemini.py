"""What only Gemini CLI does: its dialog carries our question even in yolo, and a folder must be trusted."""

import json

import pytest

from e2e.clients.agent import Sitting
from e2e.clients.gemini import Gemini
from patience import until

MADE, OTHER = "touch made", "touch other"
DIALOG = "Allow execution of"
YOLO = ("--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-i", "go")


@pytest.fixture
def gemini(house):
    found = Gemini(house)
    house.install(found.agent)
    return found


@pytest.fixture
def made(house):
    return house.project / "made"


def sit(gemini, *calls):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    return Sitting(gemini, calls, YOLO)


def test_its_dialog_shows_our_reason_even_in_yolo_and_its_yes_is_recorded(gemini, house, made):
    with sit(gemini, gemini.shell(MADE)) as screen:
        screen.shows(DIALOG, "Checkrein asks", "medium risk")
        assert not made.exists()
        screen.type("1")
        until(made.exists)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["verdict"], found["answer"], found["channel"]) == ("ask", "approved", "agent")
    assert found["result"] == "success"
    assert house.verifies()


def test_a_no_in_its_dialog_is_recorded_and_nothing_runs(gemini, house, made):
    with sit(gemini, gemini.shell(MADE)) as screen:
        screen.shows(DIALOG)
        screen.type("\x1b")
        screen.no_longer_shows(DIALOG)
    until(lambda: house.json("inbox") == [])
    assert not made.exists()
    (found,) = house.entries()
    assert found["answer"] != "approved" and found["result"] != "success"


def test_a_yes_for_its_session_does_not_answer_our_next_question(gemini, house, made):
    with sit(gemini, gemini.shell(MADE), gemini.shell(OTHER)) as screen:
        screen.shows(DIALOG)
        screen.type("2")
        until(made.exists)
        screen.shows(DIALOG, f"Bash: {OTHER}")
        assert not (house.project / "other").exists()
    assert [each["verdict"] for each in house.entries()] == ["ask", "ask"]


def test_what_is_refused_is_refused_in_yolo_without_a_dialog(gemini, house):
    with sit(gemini, gemini.shell("curl https://example.com/pay")) as screen:
        (told,) = until(screen.told)
        assert DIALOG not in screen.text
    assert "Checkrein refused" in told


def test_a_command_ended_by_a_signal_has_failed(gemini, house):
    house.checkrein("rules", "add", "allow", "--tool", "Bash")
    gemini.run(gemini.shell("kill -9 $$"), gemini.shell("exit 3"))
    assert [each["result"] for each in house.entries()] == ["failure", "failure"]


def test_its_file_tools_have_their_common_names(gemini, house):
    for tool in ("Write", "Edit"):
        house.checkrein("rules", "add", "allow", "--tool", tool)
    path = str(house.project / "src" / "app.py")
    edit = {"file_path": path, "old_string": "x = 1", "new_string": "x = 2", "instruction": "another number"}
    gemini.run(
        {"name": "read_file", "input": {"file_path": path}},
        {"name": "replace", "input": edit},
        {"name": "list_directory", "input": {"dir_path": str(house.project)}},
        {"name": "glob", "input": {"pattern": "**/*.py"}},
        {"name": "grep_search", "input": {"pattern": "x = "}},
        {"name": "read_file", "input": {"file_path": str(house.project / "no-such-file")}},
    )
    found = [(each["tool_name"], each["result"]) for each in house.entries()]
    assert found == [
        ("Read", "success"),
        ("Edit", "success"),
        ("LS", "success"),
        ("Glob", "success"),
        ("Grep", "success"),
        ("Read", "failure"),
    ]
    assert (house.project / "src" / "app.py").read_text() == "x = 2\n"


def test_in_a_folder_nobody_trusted_no_hook_runs_and_the_doctor_sees_it(gemini, house):
    (gemini.home / "trustedFolders.json").write_text("{}")
    gemini.run(gemini.shell("ls"))
    assert house.entries() == []
    said = json.loads(house.run("checkrein", "doctor", gemini.agent, "--json", code=1).stdout)
    assert any("does not trust this folder" in each["text"] for each in said["checks"] if not each["ok"])


def test_hooks_switched_off_are_seen_by_the_doctor(gemini, house, made):
    path = gemini.home / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hooksConfig": {"enabled": False}}))
    house.checkrein("rules", "add", "deny", "--tool", "Bash")
    gemini.run(gemini.shell(MADE))
    assert made.exists()
    said = json.loads(house.run("checkrein", "doctor", gemini.agent, "--json", code=1).stdout)
    assert any("hooksConfig.enabled" in each["text"] for each in said["checks"] if not each["ok"])
