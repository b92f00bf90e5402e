"""The demo's gateway scene: an MCP server behind us, a client before us, and a definition that turns."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from checkrein import knocking
from checkrein.cli.demo_hooks import running
from checkrein.cli.terminal import dim, plain, say, word
from checkrein.errors import StoreError
from checkrein.hookclient import pump_words
from checkrein.ledger.query import Filter, entries
from checkrein.runtime import door_file, write_door
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

_SERVER = "docs"
_COMMAND = ("python", "-m", "checkrein.cli.demo_server")
_CLIENT = "demo-client"
_PROGRAM = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
_PATIENCE = 20.0

Message = dict[str, Any]


def scene(project: str) -> None:
    """Add a server, be a client, be the person; everything through the real gateway and its real pump."""
    write_door()
    begin = time.time()
    with running():
        _add()
        with _client(project) as client:
            client.sees()
            client.call("search", query="refund policy")
            _accept()
            client.sees("add_page", "search")
            client.call("search", query="refund policy")
            client.call("add_page", title="How refunds work")
            say(dim(f"      a moment later `{_SERVER}` says something else about its `search`:"))
            client.sees("add_page")
            _review()
            client.call("search", query="refund policy")
    _recorded(begin)


def _add() -> None:
    say(dim(f"      $ checkrein servers add {_SERVER} -- {' '.join(_COMMAND)}"))
    entry = {"command": sys.executable, "args": list(_COMMAND[1:])}
    _ask("upstream.add", name=_SERVER, entry=entry)
    _ask("upstream.start", name=_SERVER)


def _accept() -> None:
    found = _waiting()
    picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in found]
    _ask("upstream.accept", name=_SERVER, picks=picks)
    say(f"{'':<6}{_you()} looked at {' and '.join(plain(each['name']) for each in found)}, and accepted them")


def _review() -> None:
    for each in _waiting():
        shown = [line for line in each["diff"] if line.startswith(("+ ", "- ")) and "description" in line]
        for line in shown:
            say(f"      {click.style(plain(line), fg='red' if line.startswith('-') else 'green')}")
        for flag in each["flags"]:
            say(f"      {click.style('!', fg='yellow', bold=True)} {plain(flag)}")


def _waiting() -> list[Message]:
    found = _ask("upstream.review", name=_SERVER)
    return [each for each in found if each["state"] in ("new", "changed")]


def _recorded(begin: float) -> None:
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        found = [each for each in entries(store, Filter(since=begin), 100) if each.door == "gateway"]
    finally:
        store.close()
    say(dim("      all of it is on the record:"))
    for each in reversed(found):
        said = f"you {each.answer} it" if each.answer else each.reasons[0]
        ending = each.outcome if each.completed_at else "did not run"
        name = each.tool_name.removeprefix("mcp__")
        say(dim(f"      {each.decision:<14} {plain(name):<14} {plain(said)} ({ending})"))


def _ask(verb: str, **params: Any) -> Any:
    return knocking.ask(knocking.start(), verb, params)


def _you() -> str:
    return click.style("you", bold=True)


@contextlib.contextmanager
def _client(project: str) -> Iterator[_Client]:
    # People are asked in the name of the program that started the pump, so there is one.
    program = Path(project).with_name(f"{_CLIENT}.py")
    program.write_text(_PROGRAM, encoding="utf-8")
    words = [sys.executable, "-I", "-S", str(program), *pump_words(door_file())]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - our own programs
        words, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True
    ) as pump:
        # Whatever is not heard by then never will be.
        patience = threading.Timer(_PATIENCE, _hang_up, (pump,))
        patience.start()
        try:
            yield _Client(pump)
        finally:
            patience.cancel()


def _hang_up(pump: subprocess.Popen[bytes]) -> None:
    """End the program and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pump.pid, signal.SIGKILL)


class _Client:
    """An MCP client that can ask its person; it runs the line `checkrein servers connect` shows."""

    def __init__(self, pump: subprocess.Popen[bytes]) -> None:
        self._pump, self._number = pump, 0
        self._notices: list[str] = []
        self._request(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={"elicitation": {"form": {}}},
            clientInfo={"name": _CLIENT, "version": "1"},
        )
        self._send({"method": "notifications/initialized"})

    def sees(self, *tools: str) -> None:
        """What it is offered, once that is what it should be: it is told of every change."""
        wanted = [f"{_SERVER}__{tool}" for tool in tools]
        while [each["name"] for each in self._request("tools/list")["tools"]] != wanted:
            while "notifications/tools/list_changed" not in self._notices:
                self._hear()
            self._notices.clear()
        say(dim(f"      {_CLIENT} sees: {', '.join(wanted) or 'nothing'}"))

    def call(self, tool: str, **arguments: str) -> None:
        begin = time.perf_counter()
        result = self._request("tools/call", name=f"{_SERVER}__{tool}", arguments=arguments)
        taken = dim(f"{(time.perf_counter() - begin) * 1000:.1f} ms")
        text = result["content"][0]["text"].splitlines()
        denied = result.get("isError", False)
        said = next((line for line in text if line.startswith("- ")), text[0]) if denied else text[0]
        shown = f"{_SERVER}__{tool} {next(iter(arguments.values()))}"
        say(f"{word('deny' if denied else 'allow', 5)} {plain(shown)} {taken}")
        say(f"      └─ {plain(said.removeprefix('- '))}")

    def _request(self, method: str, **params: Any) -> Message:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._hear()
            if message.get("id") == self._number and "result" in message:
                found: Message = message["result"]
                return found

    def _send(self, message: Message) -> None:
        # Whether anybody was there shows when the answer is waited for.
        with contextlib.suppress(BrokenPipeError):
            _end(self._pump.stdin).write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _hear(self) -> Message:
        line = _end(self._pump.stdout).readline()
        if not line:
            raise StoreError("The gateway hung up on the demo's client.", remedy="Run it again.")
        message: Message = json.loads(line)
        if message.get("method") == "elicitation/create":
            self._put_to_person(message)
        elif "id" not in message:
            self._notices.append(message["method"])
        return message

    def _put_to_person(self, message: Message) -> None:
        asked = message["params"]["message"].splitlines()
        why = next((line for line in asked if line.startswith("- ")), "").removeprefix("- ")
        say(f"{word('ask', 5)} {plain(asked[0])}")
        say(f"      └─ {plain(why)}")
        say(f"{'':<6}{_you()} press Accept in {_CLIENT}'s own dialog")
        self._send({"id": message["id"], "result": {"action": "accept", "content": {"remember": "once"}}})


def _end(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - the pump was started with both
    return pipe
