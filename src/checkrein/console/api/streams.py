"""How many lines to sessions are open at once, what each holds while it is, and the end of them all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")
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

    @property
    def is_full(self) -> bool:
        return self.over or self._open >= self._most

    def leave(self) -> None:
        with self._lock:
            self._open -= 1

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Whoever entered leaves at the end."""
        try:
            yield
        finally:
            self.leave()

    @property
    def open(self) -> int:
        return self._open

    def stop(self) -> None:
        self.over = True


class Held:
    """What somebody holds while they listen. INVARIANT: what comes after they left is given back at once."""

    def __init__(self) -> None:
        self._stack, self._over, self._lock = contextlib.ExitStack(), False, threading.Lock()

    def take(self, manager: AbstractContextManager[T]) -> T:
        """From any thread, however long it takes."""
        value = manager.__enter__()
        with self._lock:
            late = self._over
            if not late:
                self._stack.push(manager)
        if late:
            manager.__exit__(None, None, None)
        return value

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_error: Any) -> None:
        with self._lock:
            self._over = True
        self._stack.close()
