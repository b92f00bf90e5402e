"""A program that talks to the user's server: the same words, and only a person answers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkrein import Denied, Gate
from checkrein.call import ToolCall
from checkrein.doors.library import remote
from checkrein.errors import InputError, StoreError
from doors.library import told_program
from doors.library.told_program import questions
from patience import PATIENCE

serving, start = told_program.serving, told_program.start


@pytest.fixture
def nothing_stays(home):
    """A program that meets no server starts one, which may come up when the test is over."""
    yield
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            surroundings = (process / "environ").read_bytes().split(b"\0")
            if b"--on-demand" in words and f"HOME={os.environ['HOME']}".encode() in surroundings:
                os.kill(int(process.name), signal.SIGTERM)


def test_a_no_and_its_reason_reach_the_program(serving, start):
    program = start()
    program.tell("pick", 1)
    serving.ask("question.answer", id=questions(serving)[0]["id"], answer="denied", message="not today")
    assert "They say: not today" in program.heard()["denied"]


def test_parallel_calls_are_answered_one_by_one(serving, start):
    program = start()
    program.tell("together", 1, 2, 3)
    for question in questions(serving, 3):
        answer = "denied" if question["input"]["n"] == 2 else "approved"
        serving.ask("question.answer", id=question["id"], answer=answer)
    first, second, third = program.heard()["result"]
    assert (first, third) == ("1", "3") and "said no" in second


def test_a_program_killed_while_it_runs_leaves_its_call_unknown(serving, start):
    program = start()
    waiting = program.do("raised", 1)["pending"]
    entry = json.loads(waiting)["entry"]
    serving.ask("question.answer", id=entry, answer="approved")
    taken = serving.ask("library.take", call=json.loads(waiting)["call"], entry=entry)
    assert taken["arguments"] == {"n": 1}
    program.end(signal.SIGKILL)
    assert "is unknown" in start().do("resume", waiting)["denied"]
    assert program.ran() == []


def test_a_restarted_server_loses_no_question(nothing_stays, serving, start):
    program = start()
    program.tell("pick", 1)
    (question,) = questions(serving)
    serving.kill(signal.SIGTERM)
    serving.start()
    (again,) = questions(serving)
    assert again["id"] == question["id"]
    serving.ask("question.answer", id=question["id"], answer="approved")
    assert program.heard() == {"result": 1}


def test_a_tool_stops_and_goes_on_in_another_program(serving, start):
    program = start()
    waiting = program.do("stopping", 4)["pending"]
    second = start()
    assert second.do("resume", waiting, 5) == {"result": [4, 5]}
    assert "does not wait to go on" in program.do("resume", waiting, 6)["denied"]


def test_outcomes_earn_trust_and_what_is_below_an_agent_earns_none(serving, start, project):
    program = start()
    assert program.do("idle", 1) == {"result": 1}
    (finished,) = serving.records("finished")
    assert finished["data"]["outcome"] == "success" and finished["data"]["trust"]["mcp:python"] > 0.3
    code = (
        "import subprocess, sys; from checkrein import Gate;"
        "Gate(server=True, agent='outer', session='o', project=sys.argv[1]).decide('mcp__x__look', {});"
        "subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]], check=True)"
    )
    inner = (
        "import sys; from checkrein import Gate;"
        "Gate(server=True, agent='inner', session='i', project=sys.argv[1])"
        ".wrap(lambda: 1, name='water', needs_approval=False)()"
    )
    subprocess.run([sys.executable, "-c", code, project, inner], check=True, timeout=PATIENCE)
    data = serving.records("finished")[-1]["data"]
    assert data["outcome"] == "unknown" and "comes from inside" in data["evidence"] and data["trust"] == {}


def test_where_no_server_can_be_reached_nothing_runs(monkeypatch, home):
    def nobody(*_given):
        raise StoreError("The server did not start.")

    monkeypatch.setattr(remote.knocking, "start", nobody)
    with pytest.raises(StoreError):
        Gate(server=True)
    monkeypatch.setattr(remote.knocking, "start", remote.knocking.socket.socket)
    gate = Gate(server=True)
    monkeypatch.setattr(remote.knocking, "start", nobody)
    with pytest.raises(Denied, match="The server did not start"):
        gate.wrap(lambda: 1, name="look")()
    monkeypatch.setattr(remote, "PATIENCE", 0.01)
    with pytest.raises(StoreError):
        gate.authority.wait("e", ToolCall(tool="look"), 5.0)
    with pytest.raises(InputError, match="knows who answers"):
        gate.answer("e", "yes", actor="ada")
