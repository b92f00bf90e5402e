"""`checkrein inbox`: what waits for a person. While it is open, a person counts as reachable."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from typing import Any

import click
import msgspec

from checkrein import __version__, knocking, overview, wire
from checkrein.authority.question import described
from checkrein.cli.answers import answer, told
from checkrein.cli.opening import json_option, reading
from checkrein.cli.terminal import dim, plain, say, say_json
from checkrein.errors import CheckreinError, StoreError
from checkrein.store import Reader
from checkrein.store.questions import ASKED, get_question, waiting

POLL_SECONDS = 0.2
# How soon a server that was started again finds us here.
LOST_SECONDS = 0.05
_GREETING_SECONDS = 10.0
_KEYS = "a ID = yes, d ID why = no, q = leave"


@click.command()
@json_option
def inbox(as_json: bool) -> None:
    """Show what waits for you, and stay: each new question, and what became of it.

    While this is open you count as reachable: agents wait for your answer instead of being refused. In a
    terminal, type `a ID` to say yes, `d ID why` to say no, `q` to leave.
    """
    if as_json:
        with reading() as reader:
            say_json(overview.questions(reader, time.time()))
        return
    attendance = Attendance()
    attendance.begin()
    say(dim(f"Waiting for questions. {_KEYS}" if sys.stdin.isatty() else "Waiting for questions."))
    try:
        with reading() as reader:
            _stay(reader, attendance)
    except KeyboardInterrupt:
        return
    finally:
        attendance.end()


def _stay(reader: Reader, attendance: Attendance) -> None:
    board, keys = Board(reader), Keyboard()
    while True:
        attendance.renew()
        board.refresh()
        for line in keys.lines(POLL_SECONDS if attendance.is_counted else LOST_SECONDS):
            if not obey(line):
                return


class Attendance:
    """A connection that says a person is here, for as long as it is open."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None

    @property
    def is_counted(self) -> bool:
        return self._connection is not None

    def begin(self) -> None:
        """With a server of our own if none runs."""
        self._greet(knocking.start())

    def renew(self) -> None:
        """After the server has gone: wait for the next one. Who stopped it may want it stopped."""
        if self._connection is not None and _has_ended(self._connection):
            self.end()
            say(dim("The server has stopped; the next hook starts it again."))
        if self._connection is None and (found := knocking.connect()) is not None:
            try:
                self._greet(found)
            except StoreError:
                return
            say(dim("Reachable again."))

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _greet(self, connection: socket.socket) -> None:
        try:
            wire.send(connection, wire.encode_request(__version__, ("verb", "inbox.attend"), b"{}"))
            # The first frame is empty and says that we are counted.
            if wire.receive(connection, time.monotonic() + _GREETING_SECONDS) != b"":
                raise wire.Gone("it does not know us")
        except wire.Gone as error:
            connection.close()
            raise StoreError(
                f"The server did not answer: {error}.", remedy="Run `checkrein doctor`."
            ) from None
        self._connection = connection


def _has_ended(connection: socket.socket) -> bool:
    """Nothing comes on this line but its end."""
    return bool(select.select([connection], [], [], 0)[0])


class Board:
    """The questions a person has been shown, and those that are settled since."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: dict[str, str] = {}

    def refresh(self) -> None:
        now = time.time()
        found = {each.entry: each for each in waiting(self._reader) if each.expires_at > now}
        for entry in [each for each in self._open if each not in found]:
            say(self._came_to(entry, self._open.pop(entry)))
        for entry, question in found.items():
            if entry not in self._open:
                about = described(self._reader, question)
                self._open[entry] = about.get("tool", "")
                say(shown(about))

    def _came_to(self, entry: str, tool: str) -> str:
        settled = get_question(self._reader, entry)
        if settled is None or settled.state == ASKED:
            return f"{entry} {plain(tool)}: nobody answered in time"
        who = f" by {settled.actor}" if settled.actor else ""
        why = f": {settled.message}" if settled.message else ""
        return f"{entry} {plain(tool)}: {settled.state}{plain(who)} ({settled.channel}){plain(why)}"


def shown(about: dict[str, Any]) -> str:
    """Everything a person needs to decide."""
    arguments = msgspec.json.format(msgspec.json.encode(about.get("input")), indent=2).decode()
    head = click.style(f"{about.get('risk', 'unknown')} risk", bold=True)
    lines = [
        "",
        f"{head}  {plain(about.get('tool', ''))}  {about['id']}",
        *(f"  {plain(line)}" for line in arguments.splitlines()),
        *(f"  - {plain(reason)}" for reason in about.get("reasons", ())),
        f"  {plain(about.get('agent', ''))} session {plain(about['session'])} in {plain(about['project'])}",
        f"  until {about['expires_at']}: checkrein approve {about['id']}",
        f"  {'':<26} checkrein deny {about['id']} --message 'why'",
    ]
    return "\n".join(lines)


class Keyboard:
    """Lines a person types; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._is_there = sys.stdin.isatty()
        self._begun = b""

    def lines(self, seconds: float) -> list[str]:
        """What was typed within this time."""
        if not self._is_there:
            time.sleep(seconds)
            return []
        handle = sys.stdin.fileno()
        if not select.select([handle], [], [], seconds)[0]:
            return []
        typed = os.read(handle, 65_536)
        if not typed:
            return ["q"]
        *whole, self._begun = (self._begun + typed).split(b"\n")
        return [each.decode("utf-8", "replace").strip() for each in whole]


def obey(line: str) -> bool:
    """Do what was typed; False to leave."""
    key, _, rest = line.partition(" ")
    if key == "q":
        return False
    question, _, message = rest.strip().partition(" ")
    if key in ("a", "d") and question:
        try:
            say(told(answer(question, {"a": "approved", "d": "denied"}[key], message=message.strip())))
        except CheckreinError as error:
            say(f"checkrein: {plain(str(error))}")
    elif line:
        say(dim(_KEYS))
    return True
