"""A real server process in the test's own home, and a way to talk to it as a hook does."""

import json
import signal
import socket
import subprocess
import sys
import time

import pytest

from checkrein import __version__, knocking, wire
from checkrein.runtime import read_door, spool_dir
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE, until


class Serving:
    """The server of this test's home."""

    def __init__(self, prelude=""):
        self.process, self.prelude = None, prelude

    def start(self):
        code = "import sys; from checkrein.__main__ import main; sys.argv = ['checkrein', 'serve']; main()"
        code = f"{self.prelude}\n{code}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        until(self._is_up, failing="the server did not start")
        return self

    def _is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(self.process.stderr.read().decode())
        return knocking.is_running()

    def kill(self, number=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
        if self.process:
            self.process.stderr.close()

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(read_door().socket)
        return connection

    def hook(self, payload, mode="gate", agent="claude-code", seconds=600, facts=None, wait=PATIENCE):
        """(native answer or None, stderr, exit code) as the hook client would print it."""
        with self.connect() as connection:
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            head = f"checkrein 1 {__version__}\nhook {agent} {mode} {seconds}\n"
            head += "".join(f"{name}={value}\n" for name, value in (facts or {}).items())
            wire.send(connection, head.encode() + b"\n" + body)
            while not (frame := wire.receive(connection, time.monotonic() + wait)):
                pass
        stdout, stderr, code = wire.decode_answer(frame)
        return (json.loads(stdout) if stdout else None), stderr.decode(), code

    def ask(self, verb, **params):
        return knocking.ask(knocking.connect(), verb, params)

    def records(self, *kinds):
        store = SqliteStore.open(state_dir(), read_only=True)
        try:
            rows = store.query("SELECT body FROM record ORDER BY seq")
        finally:
            store.close()
        bodies = [json.loads(row[0]) for row in rows]
        return [body for body in bodies if not kinds or body["kind"] in kinds]


def decision(answer):
    return answer["hookSpecificOutput"]["permissionDecision"]


def until_tidied_twice():
    """Between calls a server takes in reports; one that has taken in two has looked around in between."""
    for number in range(2):
        report = spool_dir() / f"{number}.000000000-1"
        report.write_bytes(b"nothing anybody can read")
        until(report.with_name(f"{report.name}.unreadable").exists)


@pytest.fixture
def serving(home):
    made = Serving().start()
    yield made
    made.kill(signal.SIGTERM)


@pytest.fixture
def stopped(home):
    """A server that the test starts itself."""
    made = Serving()
    yield made
    made.kill(signal.SIGTERM)


@pytest.fixture
def pre(project):
    """A PreToolUse payload of Claude Code."""

    def make(command="ls", call="toolu_1", session="s-1", tool="Bash", **more):
        arguments = {"command": command} if tool == "Bash" else {}
        return {
            "session_id": session,
            "cwd": project,
            "hook_event_name": "PreToolUse",
            "permission_mode": "default",
            "prompt_id": "p-1",
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": call,
        } | more

    return make


@pytest.fixture
def post(pre):
    def make(command="ls", failed=False, **more):
        name = "PostToolUseFailure" if failed else "PostToolUse"
        said = (
            {"error": "Exit code 1", "is_interrupt": False} if failed else {"tool_response": {"stdout": "ok"}}
        )
        return pre(command, **more) | {"hook_event_name": name} | said

    return make


@pytest.fixture
def building(serving, project):
    serving.ask("phase.set", name="building", project=project)
    return serving
