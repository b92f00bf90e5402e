"""One TCP connection of the HTTP front: uvicorn's protocol, held to our limits.

It counts connections, ends those that never finish their headers, and tells a request that its client left.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Protocol, cast

import uvicorn
from uvicorn.server import ServerState

from checkrein.doors.gateway.event_stream import Send

LARGEST_HEAD = 64 << 10
Address = tuple[str, int]
Lines = dict[Address, "Line"]
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class Listening(Protocol):
    """What is told when the client of a request leaves."""

    def lose(self) -> None: ...


class Joined:
    """A transport whose writes of one moment leave together: head and body of an answer are one packet."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._parts = transport, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        if len(self._parts) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()


class Line(asyncio.Protocol):
    """Passes everything on to uvicorn's own protocol, and knows when to stop."""

    __slots__ = (
        *("_head", "_inner", "_lines", "_most", "_transport"),
        *("address", "known", "request", "since", "speaks"),
    )

    def __init__(self, inner: asyncio.Protocol, lines: Lines, most: int) -> None:
        self._inner: asyncio.Protocol | None = inner
        self._lines, self._most, self._head = lines, most, 0
        self._transport: asyncio.Transport | None = None
        self.address: Address = ("", 0)
        self.request: Listening | None = None
        # When the request now on its way began to come; never, between requests.
        self.since = 0.0
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
        self.since = asyncio.get_running_loop().time()
        self._inner.connection_made(cast("asyncio.BaseTransport", Joined(self._transport)))

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
                self.since = asyncio.get_running_loop().time()
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
            self.request = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def shutdown(self) -> None:
        """Let the response under way leave, and nothing come after it."""
        if self._inner is not None:
            cast("Any", self._inner).shutdown()


App = Callable[[dict[str, Any], Callable[[], Any], Send], Any]


def line_maker(app: App, lines: Lines, most: int) -> tuple[Callable[[], Line], ServerState]:
    """Makes the protocol for each new connection, with httptools where it is installed; and who is served."""
    config = uvicorn.Config(
        cast("Any", app),
        http="auto",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        interface="asgi3",
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    config.load()
    state = ServerState()
    make = cast("Any", config.http_protocol_class)
    return lambda: Line(make(config=config, server_state=state, app_state={}), lines, most), state
