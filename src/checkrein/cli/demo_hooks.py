"""The demo's last scene: the same authority behind a coding agent's real hooks, from spawn to exit."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from checkrein import knocking, wire
from checkrein.cli.demo_agent import DemoAgent
from checkrein.cli.terminal import dim, plain, say, word
from checkrein.doors.hooks import install
from checkrein.doors.hooks.files import settings_file
from checkrein.errors import CheckreinError, StoreBusyError
from checkrein.runtime import write_door
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

_AGENT = "claude-code"
_PATIENCE = 10.0


def scene(project: str) -> None:
    """Install into a throw-away project, then be the agent: run the very lines its settings hold."""
    write_door()
    with running():
        knocking.ask(knocking.start(), "installation.add", {"agent": _AGENT, "folder": project})
        install.apply(install.plan(_AGENT, "project", Path(project)))
        say(dim(f"      $ checkrein install {_AGENT}"))
        with contextlib.closing(_Agent(project)) as agent:
            _play(agent)


def _play(agent: _Agent) -> None:
    agent.call("ls src")
    agent.call("git push --force origin main")
    agent.call("make release")
    say(dim("      nobody could be asked; now `checkrein inbox` is open in another terminal"))
    with _person({"answer": "approved"}, "approved"):
        agent.call("make release")
    remember = {"what": "family", "for": "session"}
    with _person({"answer": "approved", "remember": remember}, "approved for this session: git commit,"):
        agent.call("git commit -m 'prices with discount'")
    agent.call("git commit -m 'and a test for it'")
    agent.call("git commit --amend --no-edit && git push")
    agent.types("/auditing")
    agent.call("pytest")


@contextlib.contextmanager
def running() -> Iterator[None]:
    """A server for as long as a scene lasts; none is left behind."""
    knocking.start().close()
    try:
        yield
    finally:
        with contextlib.suppress(CheckreinError):
            knocking.ask(knocking.start(), "server.stop", {})
        _ended()


def _ended() -> None:
    """The store is free: whatever was to be recorded is, and nothing runs in the throw-away home any more."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(StoreBusyError):
            SqliteStore.open(state_dir()).close()
            return
        time.sleep(0.02)


@contextlib.contextmanager
def _person(answer: dict[str, Any], shown: str) -> Iterator[None]:
    """Somebody who looks at the questions and answers the first one."""
    line = knocking.start()
    wire.send(line, wire.encode_request("0", ("verb", "inbox.attend"), b"{}"))
    wire.receive(line, time.monotonic() + _PATIENCE)
    thread = threading.Thread(target=_answer, args=(answer, shown))
    thread.start()
    try:
        yield
    finally:
        thread.join()
        line.close()


def _answer(answer: dict[str, Any], shown: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = knocking.ask(knocking.start(), "question.list", {})
        if found:
            knocking.ask(knocking.start(), "question.answer", {"id": found[0]["id"], **answer})
            say(f"{'':<6}{click.style('you', bold=True)} {shown} {plain(found[0]['input']['command'])}")
            return
        time.sleep(0.02)


class _Agent:
    """Sends what the agent would send, through the command lines of its own settings file."""

    def __init__(self, project: str) -> None:
        self._project, self._number, self._process = project, 0, DemoAgent()
        settings = json.loads(settings_file(_AGENT, "project", Path(project)).read_text(encoding="utf-8"))
        self._lines = {event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()}

    def call(self, command: str) -> None:
        self._number += 1
        fields = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"toolu_{self._number}",
        }
        begin = time.perf_counter()
        code, told = self._hook("PreToolUse", fields)
        taken = time.perf_counter() - begin
        said = json.loads(told)["hookSpecificOutput"]
        say(f"{word(said['permissionDecision'], 5)} Bash {plain(command)} {dim(f'{taken * 1000:.1f} ms')}")
        reason = said["permissionDecisionReason"].splitlines()
        for line in reason[2:3] if code else reason[:1]:
            say(f"      └─ {plain(line.removeprefix('- '))}")

    def types(self, text: str) -> None:
        self._hook("UserPromptExpansion", {"command_name": text.removeprefix("/"), "prompt": text})
        say(f"{'':<6}{click.style('you', bold=True)} type {text}")

    def _hook(self, event: str, fields: dict[str, Any]) -> tuple[int, bytes]:
        body = {"session_id": "demo", "cwd": self._project, "hook_event_name": event} | fields
        return self._process.hook(self._lines[event], body)

    def close(self) -> None:
        self._process.close()
