"""`checkrein eval` as a user meets it: a real server of ours, a real MCP server behind it."""

import json
import os
import pty
import select
import sys

import pytest

from javascript_ground import ready_made
from mcp_stdio import Notes

SETTINGS = """
[evaluation.profiles.careful]
asklist = ["notes__read_note"]
denylist = ["notes__delete_note"]
"""
READS = (
    "const r = await codemode.notes__read_note({title: 'a'}); console.log('read'); return r.content[0].text;"
)
DROPS = "codemode.notes__delete_note({title: 'a'})"


@pytest.fixture
def notes(home, user_settings, run, server):
    ready_made()
    user_settings(SETTINGS)
    made = Notes(home)
    run("servers", "add", "notes", "--", *made.words)
    run("servers", "accept", "notes", "--yes")
    run("rules", "add", "allow", "--server", "notes", "--pattern", "read_*")
    return made


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.js"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def typed(words, answers):
    """Run it on a terminal and type each answer when its question appears; all that was on the screen."""
    pid, person = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "checkrein", *words])
    screen, waiting = b"", list(answers)
    try:
        while select.select([person], [], [], 30)[0]:
            try:
                data = os.read(person, 65_536)
            except OSError:
                break
            screen += data
            if waiting and waiting[0][0].encode() in screen:
                os.write(person, waiting.pop(0)[1].encode())
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(person)
    return screen.decode(), os.waitstatus_to_exitcode(status)


def test_a_script_runs_and_shows_its_result(run, notes, script):
    text = run("eval", "run", script(READS))
    assert text == "| read\ndone\n"
    (row,) = run.json("eval", "runs", "--json")
    assert (row["state"], row["agent"], row["calls"]) == ("done", "person", 1)
    shown = run("eval", "show", row["id"].removeprefix("run-")[:12])
    assert shown.startswith("DONE") and "✓" in shown and "notes__read_note" in shown
    again = run.json("eval", "resume", row["id"], "--json")
    assert again["status"] == "done" and again["output"].strip() == "read"


def test_python_by_its_suffix_or_by_name(run, notes, script):
    python = "(await codemode.notes__read_note(title='a'))['content'][0]['text']"
    assert run("eval", "run", script(python, "script.py")) == "done\n"
    assert run("eval", "run", "-", "--language", "python", input=python) == "done\n"


def test_a_script_that_fails_exits_1_and_says_where(run, notes, script):
    assert "line 2" in run("eval", "run", script("const a = 1;\nthrow new Error('no');"), code=1)
    found = run.json("eval", "run", script(DROPS), "--profile", "careful", "--json", code=1)
    assert found["status"] == "failed" and found["calls"][0]["verdict"] == "denied: denied"


def test_a_profile_nobody_wrote_is_an_error(run, notes, script):
    assert "careful" in run("eval", "run", script(READS), "--profile", "nobodys", code=4)
    assert "no run" in run("eval", "show", "run-nothing", code=4)


def test_where_nobody_can_be_asked_it_waits_and_is_come_back_to(run, notes, script):
    said = run("eval", "run", script(READS), "--profile", "careful", code=75)
    assert "It waits for an answer" in said and "checkrein eval resume" in said
    (row,) = run.json("eval", "runs", "--json")
    assert row["state"] == "waiting"
    assert "1 wait for an answer" in run("eval", "runs")
    assert "?" in run("eval", "show", row["id"])
    assert run.json("eval", "resume", row["id"], "--no-wait", "--json", code=75)["status"] == "paused"
    run("approve", row["waiting"][0]["question"])
    assert run("eval", "resume", row["id"]) == "| read\ndone\n"


def test_in_a_terminal_it_is_asked_there(run, notes, script):
    file = script(READS)
    screen, code = typed(("eval", "run", file, "--profile", "careful"), [("Run this call?", "y\n")])
    assert code == 0 and '{"title":"a"}' in screen and "done" in screen, screen
    other = script("await codemode.notes__read_note({title: 'b'})")
    screen, code = typed(("eval", "run", other, "--profile", "careful"), [("Run this call?", "n\n")])
    assert code == 1 and "elicitation_declined" in screen, screen


def test_a_run_that_waits_can_be_ended(run, notes, script):
    found = run.json("eval", "run", script(READS), "--profile", "careful", "--json", code=75)
    assert run("eval", "cancel", found["run_id"]) == f"{found['run_id']}: cancelled\n"
    assert run.json("eval", "resume", found["run_id"], "--json", code=1)["status"] == "cancelled"
    assert "ended already" in run("eval", "cancel", found["run_id"], code=2)
    assert run.json("inbox", "--json") == []


def test_an_agent_may_look_but_not_run(run, notes, script, agent):
    run("eval", "run", script(READS))
    assert json.loads(agent.run("eval", "runs", "--json").stdout)[0]["state"] == "done"
    done = agent.run("eval", "run", script(READS))
    assert done.returncode == 7 and "Only a person" in done.stderr


def test_preview_is_one_of_its_commands(run, script):
    assert run.json("eval", "preview", script("codemode.a__b({})"), "--json")[0]["tool"] == "a__b"


def test_a_script_that_is_too_long_never_runs(run, notes, script):
    long = script(f"codemode.notes__read_note({{title: 'a'}}); // {'x' * 70_000}")
    assert "longer than 64 KB" in run("eval", "run", long, code=2)
    assert run.json("eval", "runs", "--json") == []
    assert "not UTF-8" in run("eval", "run", "-", "--language", "python", input=b"\xff\xfe", code=2)


def test_a_call_answered_elsewhere_is_not_asked_again(run, notes, script):
    found = run.json("eval", "run", script(READS), "--profile", "careful", "--json", code=75)
    run("approve", found["waiting"][0]["question"])
    for _ in range(5):
        assert run.json("eval", "resume", found["run_id"], "--json")["status"] == "done"
