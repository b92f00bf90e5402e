"""`checkrein inbox`: what waits for a person. While it is open, a person counts as reachable."""

from __future__ import annotations

import select
import socket
import sys
import time
from typing import Any

import click
import msgspec

from checkrein import __version__, knocking, overview, wire
from checkrein.authority.question import described
from checkrein.call import canonical
from checkrein.cli.answers import answer, told
from checkrein.cli.keyboard import Keyboard
from checkrein.cli.opening import ask, json_option, reading
from checkrein.cli.terminal import dim, plain, say, say_json
from checkrein.errors import CheckreinError, StoreError
from checkrein.ledger.secrets import MASK
from checkrein.store import Reader
from checkrein.store.questions import ASKED, get_question, waiting

POLL_SECONDS = 0.2
# How soon a server that was started again finds us here.
LOST_SECONDS = 0.05
_GREETING_SECONDS = 10.0
KEYS = (
    "a = yes, s = yes for this session, d why = no, v = show secrets, A/D = all, j/k = next/previous, "
    "q = leave (also: a ID)"
)
# From here on, questions of one session that come together are shown as one.
BURST = 4


@click.command()
@json_option
def inbox(as_json: bool) -> None:
    """Show what waits for you, and stay: each new question, and what became of it.

    While this is open you count as reachable: agents wait for your answer instead of being refused. In a
    terminal one key answers the question that stands first: `a` yes, `s` yes for this session, `d` no (with a
    reason), `v` to see the call as it will run, secrets shown, `j` and `k` to choose another, `q` to leave.
    """
    if as_json:
        with reading() as reader:
            say_json(overview.questions(reader, time.time()))
        return
    attendance = Attendance()
    try:
        attendance.begin()
        say(dim(f"Waiting for questions. {KEYS}" if sys.stdin.isatty() else "Waiting for questions."))
        with reading() as reader:
            _stay(reader, attendance)
    except KeyboardInterrupt:
        return
    finally:
        attendance.end()


def _stay(reader: Reader, attendance: Attendance) -> None:
    board = Board(reader)
    with Keyboard() as keys:
        while True:
            attendance.renew()
            board.refresh()
            for line in keys.lines(POLL_SECONDS if attendance.is_counted else LOST_SECONDS):
                if not obey(line, board):
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
        self._at = 0

    @property
    def current(self) -> str:
        """The question a lone key answers."""
        return list(self._open)[self._at % len(self._open)] if self._open else ""

    def has(self, start: str) -> bool:
        return any(entry.startswith(start) for entry in self._open)

    def answer_all(self, word: str, message: str) -> None:
        """One answer for every question that is open; a yes stops short of what is high risk."""
        waiting_now = [each for each in ask("question.list") if each["id"] in self._open]
        # INVARIANT: nobody says yes to a high risk without having looked at it.
        meant = [each for each in waiting_now if word == "denied" or each["risk"] not in ("high", "critical")]
        answers = [{"id": each["id"], "answer": word, "message": message} for each in meant]
        for came in ask("question.answer_all", answers=answers):
            say(f"{came['id']}: {came.get('answer') or plain(came['error'])}")
        if len(meant) < len(waiting_now):
            say(f"{len(waiting_now) - len(meant)} of high risk still wait, one by one.")

    def step(self, by: int) -> None:
        self._at = (self._at + by) % max(1, len(self._open))
        if self.current:
            say(f"→ {self.current} {plain(self._open[self.current])}")

    def widest(self, start: str) -> str:
        """What a yes for the session covers: the family where there is one, else exactly this call."""
        found = ask("question.list")
        whats = [offer["what"] for each in found if each["id"].startswith(start) for offer in each["offers"]]
        return "family" if "family" in whats else "exact"

    def refresh(self) -> None:
        now = time.time()
        found = {each.entry: each for each in waiting(self._reader) if each.expires_at > now}
        for entry in [each for each in self._open if each not in found]:
            say(self._came_to(entry, self._open.pop(entry)))
            self._at = 0
        fresh = [each for entry, each in found.items() if entry not in self._open]
        by_session: dict[str, list[dict[str, Any]]] = {}
        for question in fresh:
            about = described(self._reader, question)
            self._open[question.entry] = about.get("tool", "")
            by_session.setdefault(question.session, []).append(about)
        for session, abouts in by_session.items():
            if len(abouts) >= BURST:
                say(burst(session, abouts))
            else:
                for about in abouts:
                    say(shown(about))

    def _came_to(self, entry: str, tool: str) -> str:
        settled = get_question(self._reader, entry)
        if settled is None or settled.state == ASKED:
            return f"{entry} {plain(tool)}: nobody answered in time"
        who = f" by {settled.actor}" if settled.actor else ""
        why = f": {settled.message}" if settled.message else ""
        return f"{entry} {plain(tool)}: {settled.state}{plain(who)} ({settled.channel}){plain(why)}"


def burst(session: str, abouts: list[dict[str, Any]]) -> str:
    """Many questions of one session at once, as one: what they are, and one answer for all of them."""
    lines = [
        "",
        click.style(f"{len(abouts)} questions at once", bold=True)
        + f" from {plain(abouts[0].get('agent', ''))} session {plain(session)}",
        *(f"  {about['id']}  {about.get('risk', '')}: {plain(about.get('summary', ''))}" for about in abouts),
        "  A = yes to all of these that are below high risk, D why = no to all; or one by one as usual",
    ]
    return "\n".join(lines)


def shown(about: dict[str, Any]) -> str:
    """Everything a person needs to decide."""
    masked = MASK in str(about.get("input"))
    head = click.style(f"{about.get('risk', 'unknown')} risk", bold=True)
    lines = [
        "",
        f"{head}  {plain(about.get('tool', ''))}  {about['id']}",
        *spelled_out(about.get("input")),
        *([dim("  Secrets are masked: v shows the call as it will run.")] if masked else ()),
        *(f"  - {plain(reason)}" for reason in about.get("reasons", ())),
        f"  {plain(about.get('agent', ''))} session {plain(about['session'])} in {plain(about['project'])}",
        f"  until {about['expires_at']}: checkrein approve {about['id']}",
        f"  {'':<26} checkrein deny {about['id']} --message 'why'",
    ]
    return "\n".join(lines)


def spelled_out(arguments: Any) -> list[str]:
    """Arguments as JSON, a line each."""
    text = msgspec.json.format(canonical(arguments), indent=2).decode()
    return [f"  {plain(line)}" for line in text.splitlines()]


def obey(line: str, board: Board | None = None) -> bool:
    """Do what was typed; False to leave. Without an id the question that stands first is meant."""
    key, _, rest = line.partition(" ")
    if key == "q":
        return False
    if key in ("j", "k") and board:
        board.step(1 if key == "j" else -1)
        return True
    if key in ("A", "D") and board:
        board.answer_all("approved" if key == "A" else "denied", rest.strip())
        return True
    question, message = _meant(rest.strip(), board)
    if key == "v" and question:
        try:
            found = ask("question.call", id=question)
            say("\n".join([f"{plain(found['tool'])}  {found['id']}", *spelled_out(found["input"])]))
        except CheckreinError as error:
            say(f"checkrein: {plain(str(error))}")
        return True
    if key in ("a", "s", "d") and question:
        try:
            remember = {"remember": {"what": board.widest(question)}} if key == "s" and board else {}
            word = "denied" if key == "d" else "approved"
            say(told(answer(question, word, message=message, **remember)))
        except CheckreinError as error:
            say(f"checkrein: {plain(str(error))}")
    elif line:
        say(dim(KEYS))
    return True


def _meant(rest: str, board: Board | None) -> tuple[str, str]:
    """(question, message) of what stands behind a key."""
    first, _, message = rest.partition(" ")
    if board is None or (first and board.has(first)):
        return first, message.strip()
    return board.current or first, rest if board.current else message.strip()
