"""A person's computer for one test: a home, a project, Checkrein installed, and what it wrote down."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checkrein.store.sqlite import SqliteStore
from e2e.clients.processes import SOMEBODY, is_alive, run, running
from patience import until

BIN = Path(sys.executable).parent
SHOWS = 1000
PROGRAM = BIN / "checkrein"


class House:
    def __init__(self, *, root=True):
        # Short, because a socket's name must be.
        self.root = Path(tempfile.mkdtemp(prefix="cr-", dir="/tmp")).resolve()
        self.home, self.project = self.root / "home", self.root / "app"
        # An agent that skips its own questions does not run as root.
        self.uid = SOMEBODY if not root and os.geteuid() == 0 else None
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(self.home / "tmp"),
        }
        (self.home / "tmp").mkdir(parents=True)
        self.file("src/app.py", "x = 1\n")
        self.file("README.md", "# App\n")
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)
        self.commit()

    def commit(self):
        """Everything in the project, as it is."""
        for words in (["add", "."], ["commit", "-q", "-m", "as it is"]):
            name = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com"]
            subprocess.run(["git", *name, *words], cwd=self.project, check=True)

    @property
    def state(self):
        return self.home / ".local" / "state" / "checkrein"

    @property
    def door(self):
        return self.state / "door"

    def file(self, name, text):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def settings(self, text):
        """The user's own settings file."""
        path = self.home / ".config" / "checkrein" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    # What a person types in a terminal of their own

    def run(self, *words, code=0, **extra):
        done = run(
            [str(each) for each in words], env=self.environment, cwd=self.project, uid=self.uid, **extra
        )
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def checkrein(self, *words, code=0):
        return self.run(PROGRAM, *words, code=code).stdout

    def json(self, *words):
        return json.loads(self.checkrein(*words, "--json"))

    def install(self, agent):
        return self.checkrein("install", agent, "--project")

    @contextlib.contextmanager
    def inbox(self):
        """Somebody looks at the questions."""
        with running([PROGRAM, "inbox"], env=self.environment, cwd=self.project, uid=self.uid):
            until(lambda: self.json("up")["reachable"])
            yield

    @contextlib.contextmanager
    def agreeable(self):
        """Somebody who says yes to everything, one question after the other."""
        over = threading.Event()

        def say_yes():
            while not over.wait(0.1):
                for each in self.json("inbox"):
                    self.checkrein("approve", each["id"], code=None)

        with self.inbox(), ThreadPoolExecutor(1) as hands:
            going = hands.submit(say_yes)
            try:
                yield
            finally:
                over.set()
                going.result()

    def question(self):
        """The one question that waits."""
        return until(lambda: self.json("inbox"))[0]

    # What was written down

    def entries(self):
        """Every judged call, oldest first."""
        return self.json("audit", "list", "--limit", str(SHOWS))[::-1]

    def entry(self, call_id):
        """The one entry of a call."""
        found = [each for each in self.entries() if each["call_id"] == call_id]
        assert len(found) == 1, f"{len(found)} entries for {call_id}"
        return found[0]

    def records(self, *kinds):
        store = SqliteStore.open(self.state, read_only=True)
        try:
            bodies = [json.loads(row[0]) for row in store.query("SELECT body FROM record ORDER BY seq")]
        finally:
            store.close()
        return [body for body in bodies if not kinds or body["kind"] in kinds]

    def verifies(self):
        return json.loads(self.checkrein("audit", "verify", "--json"))["ok"]

    # The server

    def server(self):
        """The process number of the server, which is started if none runs."""
        return self.json("up")["pid"]

    def servers(self):
        """Every server that ever ran here."""
        with contextlib.suppress(OSError):
            log = (self.state / "server.log").read_text()
            return [int(found) for found in re.findall(r"process (\d+)", log)]
        return []

    def stop(self):
        """End every server that runs here, whatever state it is in."""
        for pid in self.servers():
            if is_alive(pid) and "checkrein" in _command(pid):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)
                with contextlib.suppress(AssertionError):
                    until(lambda pid=pid: not is_alive(pid))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def leave(self):
        for pid in self._residents():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def _residents(self):
        """Whatever still runs with this home: what a failed test or a model left in the background."""
        mark = f"HOME={self.home}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)


def _command(pid):
    words = ["ps", "-o", "command=", "-p", str(pid)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout
