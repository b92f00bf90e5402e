"""The conversation at a terminal, line by line, until the person leaves."""

from __future__ import annotations

import contextlib
import os

from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.chat_commands import obey
from checkrein.cli.chat_talk import Talk, read
from checkrein.cli.inbox import Attendance
from checkrein.cli.terminal import dim, plain
from checkrein.errors import CheckreinError


def interactive(talk: Talk) -> None:
    """Until the person leaves. While this is open they count as reachable."""
    if os.environ.get("TERM", "dumb") != "dumb":
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - lines can be edited and called back
    attendance = Attendance()
    attendance.begin()
    try:
        _greet(talk)
        while True:
            line = _typed()
            attendance.renew()
            try:
                if not (obey(talk, line) if line.startswith("/") else _said(talk, line)):
                    return
            except CheckreinError as error:
                talk.screen.say(f"checkrein: {plain(str(error))}")
    except (EOFError, KeyboardInterrupt):
        talk.screen.say()
    finally:
        attendance.end()
        if talk.session:
            talk.screen.say(dim(f"Go on with: checkrein chat --session {talk.session}"))


def _greet(talk: Talk) -> None:
    status = ask_chat("status", doing="Opening chat")
    if status["ready"]:
        name = f"{status['provider']}/{status['model']}"
        talk.screen.say(
            dim(f"{plain(name)}. /help says what there is; Ctrl-C stops an answer, Ctrl-D leaves.")
        )
    else:
        talk.screen.say(f"checkrein: {plain(status['reason'])}")
    if talk.session:
        talk.take_up()


def _said(talk: Talk, line: str) -> bool:
    if line.strip():
        talk.told(*talk.say(line))
    return True


def _typed() -> str:
    """What was typed; a backslash at the end of a line means that more follows."""
    line = read("> ")
    while line.endswith("\\"):
        line = line[:-1] + "\n" + read(". ")
    return line
