"""Brings questions and answers together. The questions are rows in the store; only who waits is kept here.

Doors wait; the pipeline records. Nothing here decides anything.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from checkrein.call import ToolCall
from checkrein.store import Reader
from checkrein.store.questions import ASKED, Question, get_question

_CALLS_KEPT = 1024


class Broker:
    """Who waits for which answer, and whether a person is within reach."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._changed = threading.Condition()
        self._calls: dict[str, ToolCall] = {}
        self._edits: dict[str, dict[str, Any]] = {}
        self._waiters: dict[str, int] = {}
        self._told: dict[str, list[Callable[[], None]]] = {}
        self._present = 0
        self._reaches: Callable[[], bool] | None = None

    def keep(self, entry: str, call: ToolCall) -> None:
        """Remember the call a question is about, for as long as somebody may answer it."""
        with self._changed:
            if len(self._calls) >= _CALLS_KEPT:
                # INVARIANT: a call somebody waits for is never forgotten, so its answer is always judged.
                spare = [each for each in self._calls if each not in self._waiters]
                for each in spare[: len(self._calls) - _CALLS_KEPT + 1]:
                    del self._calls[each]
            self._calls[entry] = call

    def call(self, entry: str) -> ToolCall | None:
        return self._calls.get(entry)

    def edit(self, entry: str, arguments: dict[str, Any]) -> ToolCall | None:
        """The call with other arguments; None when nobody is there to run it."""
        call = self._calls.get(entry)
        # INVARIANT: an edited call is approved only while somebody waits who can run the edited one.
        if call is None or not self.is_awaited(entry):
            return None
        return msgspec.structs.replace(call, arguments=arguments)

    @contextlib.contextmanager
    def settling(self) -> Iterator[None]:
        """While an answer is recorded and told.

        INVARIANT: nobody sees the answer without the arguments that were approved with it.
        """
        with self._changed:
            yield

    def settled(self, entry: str, edited: dict[str, Any] | None = None) -> None:
        """Wake whoever waits for this question."""
        with self._changed:
            if edited is not None:
                self._edits[entry] = edited
            while len(self._edits) > _CALLS_KEPT:
                del self._edits[next(iter(self._edits))]
            if not self._waiters.get(entry):
                self._calls.pop(entry, None)
            self._changed.notify_all()
            told = self._told.pop(entry, [])
        for tell in told:
            tell()

    def edited(self, entry: str) -> dict[str, Any] | None:
        """The arguments a person wrote instead, for everyone who waited: a call may be heard twice."""
        return self._edits.get(entry)

    def wait(self, entry: str, seconds: float) -> Question | None:
        """The question once it is answered; None when that took longer."""
        with self._waiting(entry), self._changed:
            found = get_question(self._reader, entry)
            if found is not None and found.state == ASKED:
                self._changed.wait(seconds)
                found = get_question(self._reader, entry)
        return found if found is not None and found.state != ASKED else None

    @contextlib.contextmanager
    def telling(self, entry: str, call: ToolCall, tell: Callable[[], None]) -> Iterator[None]:
        """Have `tell` called once the question is answered, for who has no thread to wait with."""
        with self.awaiting(entry, call):
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

    @contextlib.contextmanager
    def awaiting(self, entry: str, call: ToolCall) -> Iterator[None]:
        """Somebody will wait for this question until the block ends, with pauses."""
        with self._waiting(entry):
            self.keep(entry, call)
            try:
                yield
            finally:
                with self._changed:
                    if self._waiters[entry] == 1:
                        self._calls.pop(entry, None)

    @contextlib.contextmanager
    def _waiting(self, entry: str) -> Iterator[None]:
        with self._changed:
            self._waiters[entry] = self._waiters.get(entry, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._waiters[entry] -= 1
                if not self._waiters[entry]:
                    del self._waiters[entry]
