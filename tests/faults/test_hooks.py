"""Hooks under load while the server is killed: every verdict has its record, every outcome counts once."""

import contextlib
import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest
from ground import FULL, SOAK

from agent_process import AgentProcess
from checkrein import knocking
from checkrein.hookclient import client_command
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.verify import verify
from checkrein.runtime import door_file, spool_dir, write_door
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import trust_of
from patience import PATIENCE, until

ROUNDS, AT_ONCE = (20, 50) if SOAK else (3, 50) if FULL else (1, 50)
KILLS, WORKERS = (100, 6) if SOAK else (8, 4) if FULL else (3, 4)
# What the client says by itself when no server answered.
OWN_REFUSAL = b"could not judge this call"


def running():
    """The server's process id, if one answers."""
    connection = knocking.connect()
    return knocking.ask(connection, "server.about", {})["pid"] if connection else None


@contextlib.contextmanager
def served(project):
    """A server for the project, in building; whichever runs at the end is stopped."""
    write_door()
    knocking.ask(knocking.start(), "phase.set", {"name": "building", "project": project})
    try:
        yield
    finally:
        pid = running()
        if pid:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not knocking.is_running())


@pytest.fixture
def hooks(project):
    with served(project):
        made = Hooks(project)
        yield made
        made.agent.end()


class Hooks:
    """An agent's hooks, as processes."""

    def __init__(self, project):
        self.project, self.agent = project, AgentProcess()

    def start(self, call, event="PreToolUse", mode="gate", command="pytest"):
        body = {
            "session_id": "s-1",
            "cwd": self.project,
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": call,
        }
        if event == "PostToolUse":
            body["tool_response"] = {"stdout": "ok"}
        line = client_command(door_file(), "claude-code", mode, 600)
        return self.agent.start(line, json.dumps(body).encode())

    def run(self, *arguments, **named):
        process = self.start(*arguments, **named)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return process.returncode, stdout, stderr


def records(*kinds):
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        rows = store.query("SELECT kind, entry, body FROM record ORDER BY seq")
    finally:
        store.close()
    return [(kind, entry, json.loads(body)["data"]) for kind, entry, body in rows if kind in kinds]


def check_chain():
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        report = verify(store, state_dir(), Signer(state_dir()).public)
    finally:
        store.close()
    assert report.ok, (report.broken, report.findings)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_fifty_hooks_at_once_meet_a_dead_server(hooks):
    """Each round begins without a server: exactly one is started, everybody is answered and recorded."""
    for number in range(ROUNDS):
        pid = running()
        if pid:
            os.kill(pid, signal.SIGKILL)
            until(lambda gone=Path(f"/proc/{pid}"): not gone.exists())
        started = [hooks.start(f"r{number}-{each}") for each in range(AT_ONCE)]
        codes = []
        for process in started:
            stdout, stderr = process.communicate(timeout=PATIENCE)
            assert OWN_REFUSAL not in stderr, stderr
            codes.append((process.returncode, json.loads(stdout)["hookSpecificOutput"]["permissionDecision"]))
        assert codes == [(0, "allow")] * AT_ONCE
    decided = [data["call_id"] for _, _, data in records("decided")]
    assert sorted(decided) == sorted(f"r{n}-{each}" for n in range(ROUNDS) for each in range(AT_ONCE))
    check_chain()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killing_the_server_under_load_loses_no_verdict_and_counts_no_outcome_twice(hooks):
    answered, reported, stop = [], [], threading.Event()
    failures = []

    def work(worker):
        number = 0
        try:
            while not stop.is_set():
                number += 1
                call = f"w{worker}-{number}"
                code, stdout, stderr = hooks.run(call)
                if OWN_REFUSAL in stderr:
                    assert code == 2
                    continue
                assert (code, b'"allow"' in stdout) == (0, True), (code, stdout, stderr)
                answered.append(call)
                code, _, stderr = hooks.run(call, event="PostToolUse", mode="tell")
                assert code == 0, stderr
                reported.append(call)
        except BaseException as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    chance, killed = random.Random(7), [None]
    while len(killed) <= KILLS and not stop.is_set():
        # While the next one starts, or in the middle of its answers.
        enough = len(answered) + chance.randrange(6)
        until(lambda enough=enough: len(answered) >= enough or stop.is_set())
        pid = until(lambda: (holder := _holder()) != killed[-1] and holder)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        killed.append(pid)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failures, failures[0]
    knocking.start().close()
    _settled()
    decided = {data["call_id"]: entry for _, entry, data in records("decided")}
    assert answered
    assert set(answered) <= set(decided)
    finished = [entry for _, entry, _ in records("finished")]
    assert len(finished) == len(set(finished))
    assert {decided[call] for call in reported} <= set(finished), records("request_refused", "unjudged")
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        # What had to wait in the spool ended its call, and earned nothing.
        earned = sum(bool(data["trust"]) for _, _, data in records("finished"))
        assert trust_of(store, hooks.project).get("test_run", {}).get("successes", 0) == earned
    finally:
        store.close()
    check_chain()


def _holder():
    """Whoever holds the store: the server, also one that is only starting."""
    try:
        pid = int((state_dir() / "store.lock").read_text() or 0)
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if b"serve" in words else None


def _settled():
    """Every report that had to wait has been taken in."""
    until(
        lambda: all(each.name.endswith(".part") for each in spool_dir().iterdir()),
        failing=lambda: sorted(each.name for each in spool_dir().iterdir()),
    )
