"""Server-sent events on their way to one client of the HTTP front: put at once, written as fast as it reads.

Nothing here waits for a client that does not read: beyond a bound the stream gives up and says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from checkrein.doors.gateway.messages import LARGEST, Message, encode

# What may wait for a slow reader: any one message, and as much again.
MOST_WAITING = 2 * LARGEST
HEADERS = (
    b"content-type: text/event-stream\r\n"
    b"cache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
    b"x-content-type-options: nosniff\r\n"
)
STILL_HERE = b": still here\n\n"


def event(message: Message) -> bytes:
    """One message as an event; JSON as we write it has no line breaks."""
    return b"event: message\ndata: " + encode(message) + b"\n\n"


class Response(Protocol):
    """Where it goes, as `Turn` has it."""

    async def begin(self, status: int, lines: bytes) -> None: ...

    async def write(self, body: bytes, *, more: bool) -> None: ...


class EventStream:
    """One response that stays open. Somebody runs `run`; everybody may `put`; `end` or `lose` is the last."""

    __slots__ = ("_lines", "_over", "_queue", "_response", "_wake", "lost", "quiet_since", "waiting")

    def __init__(self, response: Response, lines: bytes = b"", now: float = 0.0) -> None:
        """`lines`: more headers, as they are sent."""
        self._response, self._lines = response, lines
        self._queue: deque[bytes] = deque()
        self._wake, self._over = asyncio.Event(), False
        self.lost, self.waiting, self.quiet_since = False, 0, now

    def put(self, data: bytes) -> bool:
        """Write this soon; False when the client reads too slowly, and nothing more will be written."""
        if self.lost or self._over:
            return not self.lost
        self.waiting += len(data)
        if self.waiting > MOST_WAITING and self._queue:
            self.lose()
            return False
        self._queue.append(data)
        self._wake.set()
        return True

    def end(self) -> None:
        """What was put is still written."""
        self._over = True
        self._wake.set()

    def lose(self) -> None:
        """The client is gone: what was put goes nowhere."""
        self.lost = True
        self._queue.clear()
        self._wake.set()

    def breathe(self, now: float, seconds: float) -> None:
        """Say that we are still here to a client that has heard nothing for this long."""
        if now - self.quiet_since >= seconds and not self._queue:
            self.put(STILL_HERE)
            self.quiet_since = now

    async def run(self) -> None:
        """Write until the end; returns early when the client is lost."""
        now = asyncio.get_running_loop().time
        await self._response.begin(200, HEADERS + self._lines)
        while not self.lost:
            self._wake.clear()
            last = self._over
            batch = b"".join(self._queue)
            self._queue.clear()
            if batch or last:
                await self._response.write(batch, more=not last)
                self.quiet_since = now()
            self.waiting = sum(map(len, self._queue))
            if last:
                return
            await self._wake.wait()
