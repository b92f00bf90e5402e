"""Threads that take connections. One always waits for the next, so that no slow client holds up another."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

# Beyond this many connections at once the others wait in the socket's own queue.
MOST = 256
KEPT = 8


class Workers:
    """A pool that grows when everyone is busy and shrinks when they are not."""

    def __init__(
        self, listener: socket.socket, handle: Callable[[socket.socket], None], most: int = MOST
    ) -> None:
        self._listener, self._handle, self._most = listener, handle, most
        self._lock = threading.Lock()
        self._idle = 0
        self._threads: set[threading.Thread] = set()
        self._ending = False

    def start(self) -> None:
        with self._lock:
            self._hire()

    @property
    def busy(self) -> int:
        with self._lock:
            return len(self._threads) - self._idle

    def stop(self, seconds: float) -> None:
        """Take nothing new, and give what is on its way this long to end."""
        self._ending = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(seconds)

    def _hire(self) -> None:
        thread = threading.Thread(target=self._work, name="checkrein-worker", daemon=True)
        self._threads.add(thread)
        self._idle += 1
        thread.start()

    def _work(self) -> None:
        try:
            while self._take():
                pass
        finally:
            with self._lock:
                self._idle -= 1
                self._threads.discard(threading.current_thread())

    def _take(self) -> bool:
        """One connection from its first byte to its last; False when this thread is needed no more."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            # Out of descriptors is a moment, a closed listener the end.
            return not self._ending and self._listener.fileno() >= 0
        with self._lock:
            self._idle -= 1
            if not self._idle and len(self._threads) < self._most:
                self._hire()
        try:
            with connection:
                self._handle(connection)
        finally:
            with self._lock:
                self._idle += 1
                spare = self._idle > KEPT
        return not self._ending and not spare
