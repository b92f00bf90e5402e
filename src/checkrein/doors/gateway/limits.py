"""How long requests may take. The relay begins a limit for each; whoever waits hears when it is over.

Most have as long as the one before, so they are over in the order they began, and one timer does for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Lengths that have a row of their own; a limit of another length has its own timer.
MOST_ROWS = 16


class Limit:
    """One request's time. It can be put off and stand still; who watches it is told once."""

    __slots__ = ("_expired", "_loop", "_row", "_tell", "_timer", "_when", "seconds")

    def __init__(self, seconds: float, loop: asyncio.AbstractEventLoop, row: _Row | None) -> None:
        self.seconds, self._loop, self._row = seconds, loop, row
        self._tell: Callable[[], None] | None = None
        self._timer: asyncio.Handle | None = None
        self._when: float | None = loop.time() + seconds
        self._expired = False

    def watch(self, tell: Callable[[], None]) -> None:
        """Have somebody told, once, when the time is over."""
        self._tell = tell
        if self._row is not None and self._when is not None:
            self._row.add(self, self._when)
        else:
            self.reschedule(self._when)

    def when(self) -> float | None:
        """The moment it is over; none while it stands still."""
        return self._when

    def expired(self) -> bool:
        return self._expired

    def reschedule(self, when: float | None) -> None:
        """Over at another moment; it leaves the row of those that were not put off."""
        self.end()
        self._when, self._row = when, None
        if when is not None:
            self._timer = self._loop.call_at(when, self._expire)

    def is_over(self) -> None:
        """By itself: what goes wrong with one is not another's."""
        self._row, self._timer = None, self._loop.call_soon(self._expire)

    def _expire(self) -> None:
        self._expired, self._timer = True, None
        if self._tell is not None:
            self._tell()

    def end(self) -> None:
        """Nobody needs to be told any more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._row is not None:
            self._row.drop(self)


class _Row:
    """Limits of one length, in the order they began. Its timer is set for the first it found waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Limit, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, limit: Limit, when: float) -> None:
        self._waiting[limit] = when
        if self._timer is None:
            self._timer = self._loop.call_at(when, self._look)

    def drop(self, limit: Limit) -> None:
        self._waiting.pop(limit, None)

    def _look(self) -> None:
        now, self._timer = self._loop.time(), None
        over = []
        for limit, when in self._waiting.items():
            if when > now:
                self._timer = self._loop.call_at(when, self._look)
                break
            over.append(limit)
        for limit in over:
            del self._waiting[limit]
            limit.is_over()


class Limits:
    """Begins limits on one loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rows: dict[float, _Row] = {}

    def begin(self, seconds: float) -> Limit:
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        row = self._rows.get(seconds)
        if row is None and len(self._rows) < MOST_ROWS:
            row = self._rows[seconds] = _Row(loop)
        return Limit(seconds, loop, row)
