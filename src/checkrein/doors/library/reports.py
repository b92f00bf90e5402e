"""Successes on their way to the record, a few at a time: no result waits for them.

Until one is recorded the call's fate counts as unknown, which is also what a crash in between leaves behind.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from checkrein.errors import CheckreinError
from checkrein.finishing import Outcome

SECONDS = 0.05
MOST = 32
_log = logging.getLogger("checkrein")


class Reports:
    """Collects for a moment; `record` puts several outcomes on the record at once."""

    def __init__(self, record: Callable[[Sequence[Outcome]], None]) -> None:
        self._record = record
        self._waiting: deque[Outcome] = deque()
        # Held while outcomes are recorded, so that whoever flushes finds everything before it recorded.
        self._turn = threading.RLock()
        self._wake, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, outcome: Outcome) -> None:
        self._waiting.append(outcome)
        if self._thread is None:
            self._start()
        if len(self._waiting) >= MOST or self._ended.is_set():
            self.flush()
        elif not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        """Record what there is now. What cannot be recorded stays unknown, and is said."""
        with self._turn:
            # INVARIANT: what comes meanwhile stays for the next time.
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not waiting:
                return
            try:
                self._record(waiting)
            except CheckreinError as error:
                _log.warning("%d outcome(s) could not be recorded: %s", len(waiting), error)

    def close(self) -> None:
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _start(self) -> None:
        with self._turn:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkrein-reports", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait()
            self._ended.wait(SECONDS)
            self._wake.clear()
            self.flush()
