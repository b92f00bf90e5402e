"""A person and a model, in a terminal or through a pipe: what is typed is said, what comes is shown."""

from __future__ import annotations

import sys
import termios
from typing import Any, Literal

from checkrein.cli import chat_answering
from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.chat_following import Following
from checkrein.cli.chat_screen import Screen, text_of, transcript
from checkrein.cli.inbox import Attendance
from checkrein.cli.terminal import dim, plain, say_json
from checkrein.errors import InputError, NotFoundError

Facts = dict[str, Any]
# Who answers for calls that wait: the person here, nobody (they are refused), or somebody elsewhere.
Asks = Literal["here", "no", "elsewhere"]
_NOBODY = "Nobody is there to be asked. Go on without it."
LONGEST_INPUT = 4_000_000
_EARLIER = 6


class Talk:
    """One session, made when something is first said in it."""

    def __init__(self, screen: Screen, *, session: str = "", model: str = "", project: str = "") -> None:
        self.screen, self.session = screen, session
        self._model, self._project = model, project

    @property
    def is_scripted(self) -> bool:
        """Whether the model is the built-in one, which does what lines that begin with a slash say."""
        known = ask_chat("session", id=self.session, limit=1)["session"] if self.session else {}
        ref = self._model or f"{known.get('provider', '')}/{known.get('model', '')}".strip("/")
        return (ref or ask_chat("status")["provider"]).partition("/")[0] == "demo"

    def begin(self) -> str:
        """The session; a new one is made with the first thing that is done in it."""
        if not self.session:
            made = ask_chat("create", model=self._model, project=self._project)
            self.session, self._model = made["id"], ""
        return self.session

    def open(self, session: str, model: str = "") -> None:
        self.session, self._model = session, model

    def leave(self, model: str = "") -> None:
        """The next thing said begins another session."""
        self.session, self._model = "", model

    def picked(self, model: str) -> Facts:
        changed: Facts = ask_chat("update", id=self.begin(), model=model)
        self._model = ""
        return changed

    def say(self, text: str, asks: Asks = "here") -> tuple[str, Following]:
        """Say it and follow the answer to its end; how it ended."""
        before = self.session, self._model
        session = self.begin()
        last = ask_chat("events", session=session)["last"]
        try:
            sent = ask_chat("send", doing="Asking the model", session=session, text=text, model=self._model)
        except (InputError, NotFoundError):
            if not before[0]:
                # Nothing was said in it: nothing empty stays in the list.
                self.session, self._model = before
                ask_chat("delete", id=session)
            raise
        return self._followed(sent["run"], last, asks)

    def again(self) -> tuple[str, Following]:
        """Another answer to what was said last."""
        session = self.begin()
        last = ask_chat("events", session=session)["last"]
        return self._followed(ask_chat("regenerate", session=session)["run"], last, "here")

    def take_up(self) -> None:
        """What was said last, and the answer that is under way."""
        known = ask_chat("session", id=self.session, limit=_EARLIER)
        self.screen.say(dim(plain(known["session"]["title"])))
        live = known["run"]
        shown = [each for each in known["messages"] if live is None or each.get("run") != live["id"]]
        for line in transcript(shown):
            self.screen.say(line)
        if live is not None:
            ended, following = self._take_up_run(known)
            self.told(ended, following)

    def _take_up_run(self, known: Facts) -> tuple[str, Following]:
        run = known["run"]["id"]
        for message in known["messages"]:
            if message.get("run") == run and message["state"] == "streaming":
                self.screen.text(message["id"], text_of(message))
        following = self._following(run, "here")
        for call in known["calls"].values():
            if call["run"] == run and call.get("question"):
                following.ask(call)
        return following.until_over(known["last"]), following

    def _followed(self, run: str, after: str, asks: Asks) -> tuple[str, Following]:
        following = self._following(run, asks)
        return following.until_over(after), following

    def _following(self, run: str, asks: Asks) -> Following:
        answers = {"here": self._answer, "no": _decline, "elsewhere": None}
        return Following(self.session, run, self.screen, answers[asks])

    def _answer(self, call: Facts) -> None:
        forget_typed()
        chat_answering.answer(call, self.screen.say, read)

    def told(self, ended: str, following: Following) -> None:
        """Say how it ended, where that needs saying."""
        if ended == "failed":
            self.screen.say(f"checkrein: {plain(following.error)}")
        elif ended == "aborted":
            self.screen.notice("(stopped)")


def _decline(call: Facts) -> None:
    ask_chat("decline", run=call["run"], call=call["call_id"], reason=_NOBODY)


def forget_typed() -> None:
    """INVARIANT: what was typed before a question was there answers none; a model may have asked for it."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def read(prompt: str) -> str:
    """A line a person types; EOFError when there will be none."""
    sys.stdout.flush()
    return input(prompt)


def once(talk: Talk, text: str, asks: Asks, *, as_json: bool) -> bool:
    """One question, and its answer; whether there was one."""
    if not text.strip():
        raise InputError("There is nothing to say.", remedy="Give a text, or pipe one in.")
    attendance = Attendance()
    if asks == "here":
        attendance.begin()
    try:
        ended, following = talk.say(text, asks)
    finally:
        attendance.end()
    if as_json:
        say_json(_told(talk, ended, following))
    else:
        talk.told(ended, following)
    return ended == "done"


def _told(talk: Talk, ended: str, following: Following) -> Facts:
    return {
        "session": talk.session,
        "run": following.run,
        "state": ended,
        "text": following.answer,
        "error": following.error,
        "calls": list(following.calls.values()),
        "usage": following.usage,
    }


def piped() -> str:
    """Everything on standard input."""
    text = sys.stdin.read(LONGEST_INPUT + 1)
    if len(text) > LONGEST_INPUT:
        raise InputError(
            f"This is more than {LONGEST_INPUT:,} characters.", remedy="Attach it in the console."
        )
    return text
