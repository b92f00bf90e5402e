"""Threads that take connections. One always waits for the next, so that no slow client holds up another."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

# Beyond this many connections at once the others wait in the socket's own queue.
MOST = 256
# Two take turns, and stay warm; more are hired when both are busy.
KEPT = 2
_MOMENT = 0.05


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
            if not self._threads:
                raise RuntimeError("no thread is to be had, so nobody could answer")

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
        with self._lock:
            threads = list(self._threads)
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _hire(self) -> None:
        thread = threading.Thread(target=self._work, name="checkrein-worker", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No more threads are to be had: those that are here go on.
            return
        self._threads.add(thread)
        self._idle += 1

    def _work(self) -> None:
        while self._take():
            pass

    def _take(self) -> bool:
        """One connection from its first byte to its last; False when this thread is needed no more."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            if not self._ending and self._listener.fileno() >= 0:
                # Out of descriptors is a moment, a closed listener the end.
                time.sleep(_MOMENT)
                return True
            return self._back(leaving=True)
        with self._lock:
            self._idle -= 1
            if not self._idle and len(self._threads) < self._most:
                self._hire()
        # INVARIANT: whatever becomes of one connection, its thread lives to take the next.
        with contextlib.suppress(Exception), connection:
            self._handle(connection)
        return self._back()

    def _back(self, *, leaving: bool = False) -> bool:
        """Whether this thread waits for the next connection; decided and counted in one step.

        INVARIANT: a thread on its way out counts as nobody, so the last one that waits is never missing.
        """
        with self._lock:
            self._idle -= leaving
            stays = not leaving and not self._ending and self._idle < KEPT
            self._idle += stays
            if not stays:
                self._threads.discard(threading.current_thread())
        return stays
