"""One TCP connection of the HTTP front, held to our limits.

It counts connections, ends those that never finish their headers, and tells a request that its client left.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from checkrein.doors.gateway.http_talk import LARGEST_HEAD, App, Talk
from checkrein.doors.gateway.http_turn import Address

Lines = dict[Address, "Line"]
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class Listening(Protocol):
    """What is told when the client of a request leaves."""

    def lose(self) -> None: ...


class Line(asyncio.Protocol):
    """Passes everything on to the protocol that understands it, and knows when to stop."""

    __slots__ = (
        *("_head", "_inner", "_lines", "_most", "_transport"),
        *("address", "known", "request", "rested", "since", "speaks"),
    )

    def __init__(self, inner: asyncio.Protocol, lines: Lines, most: int) -> None:
        self._inner: asyncio.Protocol | None = inner
        self._lines, self._most, self._head = lines, most, 0
        self._transport: asyncio.Transport | None = None
        self.address: Address = ("", 0)
        self.request: Listening | None = None
        # When the request now on its way began to come; never, between requests.
        self.since = 0.0
        # When the last request was over.
        self.rested = math.inf
        # Whether an answer that comes here counts as a person's; None while nobody asked.
        self.speaks: bool | None = None
        # Whether anybody with a token ever asked something here.
        self.known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._inner is None or not self._has_room():
            self._inner = None
            self._transport.write(_FULL)
            self._transport.close()
            return
        self.address = transport.get_extra_info("peername")[:2]
        self._lines[self.address] = self
        self.since = time.monotonic()
        self._inner.connection_made(self._transport)

    def _has_room(self) -> bool:
        """INVARIANT: who has no token keeps nobody out: the longest of those makes way."""
        if len(self._lines) < self._most:
            return True
        spare = next((each for each in self._lines.values() if not each.known), None)
        if spare is None:
            return False
        del self._lines[spare.address]
        spare.abort()
        return True

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            return
        if self.request is None:
            if self._head > LARGEST_HEAD:
                self.abort()
                return
            self._head += len(data)
            if self.since == math.inf:
                self.since = time.monotonic()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._inner is None:
            return
        if self._lines.get(self.address) is self:
            del self._lines[self.address]
        self._inner.connection_lost(exc)
        if self.request is not None:
            self.request.lose()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def busy(self, request: Listening) -> None:
        """A request has been read as far as its headers, and is looked at."""
        self.request, self._head, self.since = request, 0, math.inf

    def idle(self, request: Listening) -> None:
        """The request is over; another may come, or has come already."""
        if self.request is request:
            self.request, self.rested = None, time.monotonic()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def shutdown(self) -> None:
        """Let the response under way leave, and nothing come after it."""
        if self._inner is not None:
            cast("Any", self._inner).shutdown()


def line_maker(app: App, lines: Lines, most: int) -> tuple[Callable[[], Line], set[asyncio.Task[None]]]:
    """Makes the protocol for each new connection; and the tasks of those being served."""
    tasks: set[asyncio.Task[None]] = set()
    return lambda: Line(Talk(app, tasks), lines, most), tasks
