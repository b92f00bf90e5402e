"""Runs commands as a user would, in the test's own home and project: alone, beside a server, as an agent."""

import json
import os
import pty
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from checkrein import knocking
from checkrein.cli import checkrein
from checkrein.cli.opening import reading
from checkrein.hookclient import client_command
from checkrein.runtime import door_file
from checkrein.store.questions import waiting
from patience import PATIENCE, until

AGENT_VARIABLES = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "CURSOR")
LEFT_BEHIND = """
import os, sys
from checkrein import peers
from checkrein.settings.sources import state_dir
from checkrein.store.agents import Session, put_session
from checkrein.store.sqlite import SqliteStore

above = peers.process(os.getppid())
met = Session(agent="claude-code", id=sys.argv[1], project="", started_at=1.0,
              process=above.pid, process_started=above.started)
store = SqliteStore.open(state_dir())
store.write(lambda tx: put_session(tx, met))
store.close()
"""


class Run:
    """Calls a command, in this process or (what starts others) in one of its own."""

    def __init__(self):
        self.runner = CliRunner()

    def __call__(self, *words, input=None, code=0):
        done = self.runner.invoke(checkrein, words, input=input, prog_name="checkrein")
        assert done.exit_code == code, f"{words} exited {done.exit_code}:\n{done.output}\n{done.exception!r}"
        return done.stdout if code == 0 else done.output

    def json(self, *words, input=None, code=0):
        done = self.runner.invoke(checkrein, words, input=input, prog_name="checkrein")
        assert done.exit_code == code, f"{words} exited {done.exit_code}:\n{done.output}\n{done.exception!r}"
        return json.loads(done.stdout)

    def apart(self, *words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "checkrein", *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == code, f"{words} exited {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


class Started:
    """Processes of a test, each ended by its own number when the test is over."""

    def __init__(self, folder):
        self.folder, self.all = folder, []

    def __call__(self, *words, stdin=subprocess.DEVNULL):
        """Our command in the background; `said()` is what it printed so far."""
        path = self.folder / f"said-{len(self.all)}"
        with path.open("w") as out:
            made = subprocess.Popen(
                [sys.executable, "-m", "checkrein", *words], stdin=stdin, stdout=out, stderr=subprocess.STDOUT
            )
        made.said = path.read_text
        self.all.append(made)
        return made

    def end(self):
        for each in self.all:
            if each.poll() is None:
                each.terminate()
        for each in self.all:
            each.wait(PATIENCE)


class Agent:
    """An agent as far as we can tell: a process called `claude` that tells its hooks and runs things."""

    def __init__(self, folder, project):
        self.folder, self.project, self.session = folder, project, "agent-session"

    def payload(self, event, **more):
        return {"hook_event_name": event, "session_id": self.session, "cwd": self.project, **more}

    def hook(self, mode, payload, seconds=600):
        line = client_command(door_file(), "claude-code", mode, seconds)
        return f"printf %s {shlex.quote(json.dumps(payload))} | {line}"

    def _script(self, lines):
        script = self.folder / "claude"
        script.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        script.chmod(0o755)
        return str(script)

    def run(self, *words):
        """Begin a session (met by the server, or left by an earlier one) and then try one of our commands."""
        greeting = self.hook("tell", self.payload("SessionStart", source="startup"))
        if not knocking.is_running():
            greeting = shlex.join([sys.executable, "-c", LEFT_BEHIND, self.session])
        command = shlex.join([sys.executable, "-m", "checkrein", *words])
        script = self._script([greeting, command, "exit $?"])
        return subprocess.run(
            [script], check=False, capture_output=True, text=True, cwd=self.project, timeout=PATIENCE
        )

    def call(self, command, call_id="toolu_1"):
        """A Bash call on its way to its verdict; the answer is what the hook prints."""
        payload = self.payload(
            "PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=call_id
        )
        script = self._script([self.hook("gate", payload)])
        return subprocess.Popen(
            [script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def asks(self, command, call_id="toolu_1"):
        """The same, once its question waits, and its hook for the answer."""
        before = {each.entry for each in self._waiting()}
        calling = self.call(command, call_id)
        (new,) = until(lambda: [each for each in self._waiting() if each.entry not in before])
        until(lambda: new.entry in self._awaited())
        return calling, new.entry

    @staticmethod
    def _awaited():
        found = knocking.ask(knocking.start(), "question.list", {})
        return [each["id"] for each in found if each["awaited"]]

    def _waiting(self):
        with reading() as reader:
            return waiting(reader)

    def judged(self, command, call_id="toolu_1"):
        """A call's verdict and its reason, in the agent's own words."""
        return self.told(self.call(command, call_id))

    @staticmethod
    def told(calling):
        out, _ = calling.communicate(timeout=PATIENCE)
        found = json.loads(out)["hookSpecificOutput"]
        return found["permissionDecision"], found["permissionDecisionReason"]


def live_in(folder, patch):
    """A home that several tests share, in place of the test's own; no agent's variables reach it either."""
    patch.setenv("HOME", str(folder))
    for name in ("state", "config"):
        patch.setenv(f"XDG_{name.upper()}_HOME", str(folder / name))
    patch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    forget_agents(patch)


def forget_agents(patch):
    for name in list(os.environ):
        if name.startswith(AGENT_VARIABLES):
            patch.delenv(name)


@pytest.fixture(autouse=True)
def no_agent(monkeypatch):
    """Whoever runs the tests, no agent's variables reach them."""
    forget_agents(monkeypatch)


@pytest.fixture
def run(project, monkeypatch):
    monkeypatch.chdir(project)
    return Run()


@pytest.fixture
def started(home, run):
    made = Started(home)
    yield made
    made.end()


@pytest.fixture
def server(started):
    """A real server in the test's own home."""
    made = started("serve")
    until(knocking.is_running)
    return made


@pytest.fixture(scope="module")
def chat_home(tmp_path_factory):
    """A home with a real server for all tests of a module: what talks to models takes long to load."""
    folder = tmp_path_factory.mktemp("chat")
    made = Started(folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            live_in(folder, patch)
            made("serve")
            until(knocking.is_running)
        yield folder
    finally:
        made.end()


@pytest.fixture
def chat_server(chat_home, run, monkeypatch):
    """That server, with no conversation in it yet."""
    live_in(chat_home, monkeypatch)
    for each in run.json("chat", "list", "--json"):
        run("chat", "delete", each["id"], "--yes")
    return chat_home


@pytest.fixture
def agent(home, project):
    return Agent(home, project)


@pytest.fixture
def pid():
    return os.getpid()


@pytest.fixture
def terminal():
    """Both ends of a terminal: what a person types into, and what a program reads."""
    person, program = pty.openpty()
    yield person, program
    os.close(person)
    os.close(program)
