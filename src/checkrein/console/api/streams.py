"""How many lines to sessions are open at once, and the end of them all."""

from __future__ import annotations

import threading

MOST = 256


class Streams:
    """Counted from any thread. Lines look at `over` every second."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._open = most, 0
        self._lock = threading.Lock()
        self.over = False

    def enter(self) -> bool:
        with self._lock:
            if self.over or self._open >= self._most:
                return False
            self._open += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._open -= 1

    @property
    def open(self) -> int:
        return self._open

    def stop(self) -> None:
        self.over = True
