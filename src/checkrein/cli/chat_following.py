"""One answer from its first word to its end: what happens is shown, what waits is asked, Ctrl-C stops it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.chat_screen import Screen
from checkrein.errors import CheckreinError, StoreError

Facts = dict[str, Any]
WAIT_SECONDS = 20.0
_AGAIN_SECONDS, _MOST_TRIES = 0.5, 20
_ENDS = {"end": "done", "error": "failed", "aborted": "aborted"}


class Interrupts:
    """Ctrl-C while a model answers: the first stops the answer, the second leaves.

    While a person is being asked something it interrupts that, as everywhere.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self.asking = self.stopped = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._pressed)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _pressed(self, _number: int, _frame: FrameType | None) -> None:
        if self.asking or self.stopped:
            raise KeyboardInterrupt
        self.stop()

    def stop(self) -> None:
        """Elsewhere, so that nothing that is just being shown is lost."""
        self.stopped = True
        threading.Thread(target=self._abort, daemon=True).start()

    def _abort(self) -> None:
        with contextlib.suppress(CheckreinError):
            ask_chat("abort", run=self._run)


class Following:
    """`answer` asks a person about a call; without one, calls wait for somebody elsewhere."""

    def __init__(
        self, session: str, run: str, screen: Screen, answer: Callable[[Facts], None] | None
    ) -> None:
        self._session, self.run, self._screen, self._answer = session, run, screen, answer
        self._asked: set[str] = set()
        self.calls: dict[str, Facts] = {}
        self.usage: Facts = {}
        self.error = ""
        self._interrupts = Interrupts(run)

    @property
    def answer(self) -> str:
        """What the model said, from the first word to the last."""
        return self._screen.all_text

    def until_over(self, after: str) -> str:
        """How it ended: done, failed or aborted."""
        with self._interrupts.caught():
            while True:
                came = self._events(after)
                for event in came["events"]:
                    after = event["id"]
                    ended = self._happened(event)
                    if ended:
                        return ended
                after = came["last"]

    def _events(self, after: str) -> Facts:
        """A server that went away comes back, and knows what became of the answer."""
        for _ in range(_MOST_TRIES):
            try:
                found: Facts = ask_chat("events", session=self._session, after=after, wait=WAIT_SECONDS)
            except StoreError:
                self._screen.notice("The server went away; looking for it again.")
                time.sleep(_AGAIN_SECONDS)
            else:
                return found
        raise StoreError("The server does not come back.", remedy="Run `checkrein doctor`.")

    def _happened(self, event: Facts) -> str:
        """Show it; how the answer ended, if that is what happened."""
        kind, data = event["kind"], event["data"]
        if kind == "reload":
            return self._look_anew()
        if event["run"] != self.run:
            return ""
        if kind == "text":
            self._screen.text(data["message"], data["delta"])
        elif kind == "reasoning":
            self._screen.reasoning(data["delta"])
        elif kind == "message":
            self._screen.whole(data["message"])
        elif kind in ("tool_call", "approval_required", "tool_running", "tool_result"):
            self._called(kind, data["call"])
        elif kind == "notice":
            self._screen.notice(data["text"])
        elif kind == "compressed" and data.get("compressed"):
            self._screen.notice("Older messages were put into a summary.")
        elif kind == "usage":
            self.usage = data
        elif kind == "error":
            self.error = data["text"]
        return _ENDS.get(kind, "")

    def _called(self, kind: str, call: Facts) -> None:
        known = self.calls.get(call["call_id"])
        self.calls[call["call_id"]] = call
        if known is None:
            self._screen.call(call)
        if kind == "tool_result":
            self._screen.result(call)
        elif kind == "approval_required":
            self.ask(call)

    def ask(self, call: Facts) -> None:
        if call["call_id"] in self._asked or self._interrupts.stopped:
            return
        self._asked.add(call["call_id"])
        if self._answer is None:
            entry = call.get("entry", "")
            self._screen.notice(
                f"It waits for a yes: checkrein approve {entry} (or deny, or in the console)."
            )
            return
        self._interrupts.asking = True
        try:
            self._answer(call)
        except KeyboardInterrupt:
            self._interrupts.stop()
        finally:
            self._interrupts.asking = False

    def _look_anew(self) -> str:
        """Too much was missed, or the server is another one: what is kept says how things are."""
        known = ask_chat("session", id=self._session)
        for message in known["messages"]:
            if message.get("run") == self.run:
                self._screen.whole(message)
        for call in known["calls"].values():
            if call["run"] != self.run:
                continue
            self.calls[call["call_id"]] = call
            if call.get("question"):
                self.ask(call)
        if known["run"] is not None and known["run"]["id"] == self.run:
            return ""
        last = [each for each in known["messages"] if each.get("run") == self.run][-1:]
        state = last[0]["state"] if last else "interrupted"
        self.error = (last[0].get("error") if last else "") or "The answer was cut off."
        return {"completed": "done", "aborted": "aborted"}.get(state, "failed")
