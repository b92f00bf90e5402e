"""Places for running scripts, one worker process each; a script that waits gives its own up to who needs it.

Called by the engines of both languages. Knows no interpreter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

Leave = Callable[[], Awaitable[None]]


class Seats:
    """At most `count` workers, however many scripts wait for people."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: deque[asyncio.Future[None]] = deque()
        self._resting: dict[int, Leave] = {}
        self._leaving: set[asyncio.Future[None]] = set()

    @property
    def crowded(self) -> bool:
        """Whether somebody stands in line."""
        return any(not waiter.done() for waiter in self._queue)

    async def take(self) -> None:
        """A seat: a free one, else that of who has waited longest, else the next to come free."""
        while not self._free and self._resting:
            oldest = next(iter(self._resting))
            leaving = asyncio.ensure_future(self._resting.pop(oldest)())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            # INVARIANT: who makes room is not interrupted where whoever wanted it is ended meanwhile.
            await asyncio.shield(leaving)
        if self._free:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give()
            raise

    def give(self) -> None:
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

    def rest(self, who: int, leave: Leave) -> None:
        """Whoever rests keeps the seat until another needs it; then `leave` is called, which gives it."""
        self._resting[who] = leave

    def wake(self, who: int) -> None:
        self._resting.pop(who, None)
