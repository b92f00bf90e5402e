"""Brings questions and answers together: who waits for which answer, and whether a person is within reach.

Questions, their calls and their answers are rows in the store; only waiters are kept here. Decides nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from checkrein.approval.question_calls import AskedCall, QuestionCalls
from checkrein.call import ToolCall
from checkrein.store import Reader
from checkrein.store.questions import ASKED, Question, get_question


class Broker:
    """Who waits for which answer, and whether a person is within reach."""

    def __init__(self, reader: Reader, calls: QuestionCalls) -> None:
        self._reader, self._calls = reader, calls
        self._changed = threading.Condition()
        self._waiters: dict[str, int] = {}
        self._told: dict[str, list[Callable[[], None]]] = {}
        self._present = 0
        self._reaches: Callable[[], bool] | None = None

    def asked_call(self, entry: str) -> AskedCall | None:
        """The call a question is about, as it was asked; None where it was not kept or cannot be read."""
        return self._calls.asked_call(entry)

    def call(self, entry: str) -> ToolCall | None:
        asked = self._calls.asked_call(entry)
        return asked.call if asked is not None else None

    def edited(self, entry: str) -> dict[str, Any] | None:
        """The arguments a person approved instead; None where there are none, or they cannot be read."""
        return self._calls.edited(entry)

    def settled(self, entry: str) -> None:
        """Wake whoever waits for this question, once its answer is committed."""
        with self._changed:
            self._changed.notify_all()
            told = self._told.pop(entry, [])
        for tell in told:
            tell()

    def wait(self, entry: str, seconds: float) -> Question | None:
        """The question once it is answered; None when that took longer."""
        with self.awaiting(entry), self._changed:
            found = get_question(self._reader, entry)
            if found is not None and found.state == ASKED:
                self._changed.wait(seconds)
                found = get_question(self._reader, entry)
        return found if found is not None and found.state != ASKED else None

    @contextlib.contextmanager
    def telling(self, entry: str, tell: Callable[[], None]) -> Iterator[None]:
        """Have `tell` called once the question is answered, for who has no thread to wait with."""
        with self.awaiting(entry):
            with self._changed:
                self._told.setdefault(entry, []).append(tell)
            try:
                # Answered before anybody could be told.
                found = get_question(self._reader, entry)
                if found is not None and found.state != ASKED:
                    tell()
                yield
            finally:
                with self._changed:
                    if tell in self._told.get(entry, ()):
                        self._told[entry].remove(tell)
                    if not self._told.get(entry):
                        self._told.pop(entry, None)

    def is_awaited(self, entry: str) -> bool:
        return bool(self._waiters.get(entry))

    @contextlib.contextmanager
    def awaiting(self, entry: str) -> Iterator[None]:
        """Somebody waits for this question until the block ends."""
        with self._changed:
            self._waiters[entry] = self._waiters.get(entry, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._waiters[entry] -= 1
                if not self._waiters[entry]:
                    del self._waiters[entry]

    @contextlib.contextmanager
    def attending(self) -> Iterator[None]:
        """While this is open, a person is looking at the questions."""
        with self._changed:
            self._present += 1
        try:
            yield
        finally:
            with self._changed:
                self._present -= 1

    def reach(self, reaches: Callable[[], bool] | None) -> None:
        """Have somebody say whether a person who is elsewhere would hear of a question."""
        self._reaches = reaches

    @property
    def reachable(self) -> bool:
        return self._present > 0 or (self._reaches is not None and self._reaches())
