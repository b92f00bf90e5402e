"""Threads in which interpreters take their turns: whoever waits for a worker process never holds up the loop.

The engine of Python scripts keeps them. A turn is handed over and comes back with one wake-up each way, which
for most turns costs more than the turn itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Any]


class Turns:
    """As many threads as turns were ever under way at once; the one that rested shortest is used first."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._under_way: set[_Thread] = set()
        self._rested: asyncio.Event = asyncio.Event()
        self._closed = False

    def take(self, work: Callable[[], T], unwanted: Callable[[T], object] | None = None) -> asyncio.Future[T]:
        """What the work comes to. Nothing ends it early; `unwanted` hears it in the place of who gave up."""
        coming: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        thread = self._idle.pop() if self._idle else _Thread(self._over)
        self._under_way.add(thread)
        thread.begin(work, coming, unwanted)
        return coming

    async def rest(self, seconds: float) -> None:
        """Until nobody is in a turn, also of those that nobody waits for any more; no longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._under_way:
                    self._rested.clear()
                    await self._rested.wait()

    def _over(self, thread: _Thread) -> None:
        self._under_way.discard(thread)
        self._rested.set()
        if self._closed:
            thread.end()
        else:
            self._idle.append(thread)

    def close(self) -> None:
        """No thread stays; one that is in a turn goes after it."""
        self._closed = True
        idle, self._idle = self._idle, []
        for each in idle:
            each.end()


class _Thread:
    """One turn after another. Everything but the work itself happens on the loop."""

    def __init__(self, over: Callable[[_Thread], None]) -> None:
        self._over = over
        self._go = threading.Lock()
        self._go.acquire()
        self._work: Work | None = None
        self._coming: asyncio.Future[Any] | None = None
        self._unwanted: Callable[[Any], object] | None = None
        threading.Thread(target=self._run, name="script turn", daemon=True).start()

    def begin(
        self, work: Work, coming: asyncio.Future[Any], unwanted: Callable[[Any], object] | None
    ) -> None:
        self._work, self._coming, self._unwanted = work, coming, unwanted
        self._go.release()

    def end(self) -> None:
        self._go.release()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            work, coming = self._work, self._coming
            if work is None or coming is None:
                return
            found: Any = None
            error: BaseException | None = None
            try:
                found = work()
            except BaseException as wrong:  # noqa: BLE001 - it belongs to who waits
                error = wrong
            try:
                coming.get_loop().call_soon_threadsafe(self._came, found, error)
            except RuntimeError:
                # The loop is closed: nobody waits for anything any more.
                return
            # Nothing of a turn is kept until the next.
            del work, coming, found, error

    def _came(self, found: Any, error: BaseException | None) -> None:
        coming, unwanted = self._coming, self._unwanted
        self._work = self._coming = self._unwanted = None
        self._over(self)
        if coming is None:
            return
        if not coming.done():
            if error is None:
                coming.set_result(found)
            else:
                coming.set_exception(error)
        elif error is None and unwanted is not None:
            unwanted(found)
