"""Verdicts on their way from the store's thread to the loop: one wake-up for as many as there are."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from checkrein.judged import Decided


class Mail:
    """A letter box. Anybody drops in; the loop that made it takes out."""

    def __init__(self) -> None:
        self._letters: deque[tuple[asyncio.Future[Decided], Decided]] = deque()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._rung = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def drop(self, waiting: asyncio.Future[Decided], decided: Decided) -> None:
        with self._lock:
            self._letters.append((waiting, decided))
            ring, self._rung = not self._rung, True
        if ring:
            self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        with self._lock:
            letters, self._letters = self._letters, deque()
            self._rung = False
        for waiting, decided in letters:
            if not waiting.done():
                waiting.set_result(decided)


class Told:
    """Waits for one verdict. Called with it, at once or from another thread."""

    def __init__(self, mail: Mail) -> None:
        self._mail, self._lock = mail, threading.Lock()
        self._waiting: asyncio.Future[Decided] | None = None
        self.decided: Decided | None = None

    def __call__(self, decided: Decided) -> None:
        with self._lock:
            self.decided = decided
            waiting = self._waiting
        if waiting is not None:
            self._mail.drop(waiting, decided)

    def coming(self) -> asyncio.Future[Decided]:
        """The verdict, on the loop."""
        with self._lock:
            waiting = self._waiting = self._mail.loop.create_future()
            decided = self.decided
        if decided is not None:
            waiting.set_result(decided)
        return waiting
