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
from patience import PATIENCE, until
from server.conftest import Serving

# A program that does what it is told on its standard input, line by line.
PROGRAM = """
import asyncio, json, subprocess, sys
from checkrein import Denied, Gate, Suspended, suspend

gate = Gate(server=True, asks="wait", project=sys.argv[1], session="run-1", agent="bot")
log = open(sys.argv[2], "a")

def note(n):
    print(n, file=log, flush=True)
    return n

def stops(n):
    return n, suspend({"n": n}, resume=int)

async def slowly(n):
    return note(n)

pick = gate.wrap(note, name="pick")
raised = gate.wrap(note, name="drop", asks="raise")
stopping = gate.wrap(stops, name="look", needs_approval=False)
parallel = gate.wrap(slowly, name="grow")
idle = gate.wrap(note, name="water", needs_approval=False)

async def several(*numbers):
    return await asyncio.gather(*(parallel(n) for n in numbers), return_exceptions=True)

def answer(entry):
    return gate.answer(entry, "yes")

def answer_below(entry):
    words = [sys.executable, "-m", "checkrein", "approve", entry]
    return subprocess.run(words, capture_output=True, text=True).stderr

def together(*numbers):
    return [str(each) for each in asyncio.run(several(*numbers))]

def pending():
    return [each["id"] for each in gate.pending()]

for line in sys.stdin:
    name, *given = json.loads(line)
    try:
        words = {"result": {**globals(), "resume": gate.resume}[name](*given)}
    except Suspended as suspended:
        words = {"pending": suspended.pending.json()}
    except Denied as denied:
        words = {"denied": str(denied), "stage": denied.verdict.stage}
    except Exception as error:
        words = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(words), flush=True)
"""


class Program:
    def __init__(self, project, log):
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, project, str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, *words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def heard(self):
        return json.loads(self.process.stdout.readline())

    def do(self, *words):
        self.tell(*words)
        return self.heard()

    def ran(self):
        return self.log.read_text().split() if self.log.exists() else []

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def start(project, tmp_path):
    made = []

    def program():
        made.append(Program(project, tmp_path / "log"))
        return made[-1]

    yield program
    for each in made:
        if each.process.poll() is None:
            each.end()


@pytest.fixture
def serving(home):
    made = Serving().start()
    yield made
    made.kill(signal.SIGTERM)


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


def questions(serving, count=1):
    def asked():
        found = serving.ask("question.list")
        return found if len(found) == count and all(each["awaited"] for each in found) else []

    return until(asked, failing="no question was asked")


def test_a_person_answers_in_the_inbox_and_the_program_goes_on(serving, start):
    program = start()
    program.tell("pick", 1)
    (question,) = questions(serving)
    assert (question["agent"], question["tool"]) == ("bot", "mcp__python__pick")
    serving.ask("question.answer", id=question["id"], answer="approved", edited={"n": 7})
    assert program.heard() == {"result": 7}
    assert program.ran() == ["7"]
    kinds = [each["kind"] for each in serving.records() if each["entry"] == question["id"]]
    assert kinds == ["decided", "asked", "answered", "started", "finished"]


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


def test_only_a_person_answers_neither_the_program_nor_what_it_runs(serving, start):
    program = start()
    waiting = program.do("raised", 1)["pending"]
    entry = json.loads(waiting)["entry"]
    assert program.do("pending")["result"] == [entry]
    assert "PersonOnlyError" in program.do("answer", entry)["error"]
    assert "Only a person may do this" in program.do("answer_below", entry)["result"]
    assert len(serving.records("request_refused")) == 2
    assert serving.ask("question.list")[0]["id"] == entry


def test_a_question_is_resumed_by_another_program_and_executes_once(serving, start):
    waiting = start().do("raised", 1)["pending"]
    entry = json.loads(waiting)["entry"]
    serving.ask("question.answer", id=entry, answer="approved")
    second, third = start(), start()
    assert second.do("resume", waiting) == {"result": 1}
    assert "used before" in third.do("resume", waiting)["denied"]
    changed = waiting.replace('"n":1', '"n":2')
    assert "no question about this call" in third.do("resume", changed)["error"]
    assert third.ran() == ["1"]


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
