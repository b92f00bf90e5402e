"""A program with the user's server that does what it is told, and the questions it asks."""

import json
import signal
import subprocess
import sys

import pytest

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


def questions(serving, count=1):
    def asked():
        found = serving.ask("question.list")
        return found if len(found) == count and all(each["awaited"] for each in found) else []

    return until(asked, failing="no question was asked")
