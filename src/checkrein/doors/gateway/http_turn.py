"""One HTTP request and its response, on a connection that answers one after the other. `Talk` makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol

Message = MutableMapping[str, Any]
# So much of a body waits to be asked for before reading pauses.
MOST_UNREAD = 64 << 10
STATUS = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_GONE = {"type": "http.disconnect"}


class Wire(Protocol):
    """The connection, as far as a request needs it; `full`: the client is slow to read."""

    full: bool

    def write(self, data: bytes) -> None: ...

    def read_on(self) -> None: ...

    async def drained(self) -> None: ...

    def answered(self, turn: Turn) -> None: ...


class Turn:
    """One request and its response."""

    __slots__ = (
        *("_chunked", "_expects", "_fresh", "_head", "_left", "_more", "_news", "_parts", "_size", "_wire"),
        *("gone", "keep_alive", "over", "scope", "started"),
    )

    def __init__(self, wire: Wire, scope: dict[str, Any], *, keep_alive: bool, expects: bool) -> None:
        self._wire, self.scope, self.keep_alive, self._expects = wire, scope, keep_alive, expects
        self._parts: list[bytes] = []
        self._size, self._more, self._fresh = 0, True, False
        self._news: asyncio.Future[None] | None = None
        self._head, self._chunked, self._left = b"", False, 0
        # Whether the client left, and whether the response has begun and was sent to its end.
        self.gone = self.started = self.over = False

    # The request

    def feed(self, part: bytes) -> bool:
        """More of the body; whether more should wait until somebody asks for it."""
        self._parts.append(part)
        self._size += len(part)
        self._tell()
        return self._size > MOST_UNREAD

    def complete(self) -> None:
        self._more = False
        self._tell()

    def lose(self) -> None:
        self.gone = self.gone or not self.over
        self._tell()

    def _tell(self) -> None:
        self._fresh = True
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    async def receive(self) -> dict[str, Any]:
        if self._expects:
            self._expects = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._fresh or self.gone or self.over):
            self._wire.read_on()
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self.gone or self.over:
            return _GONE
        parts, self._parts, self._size, self._fresh = self._parts, [], 0, False
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return {"type": "http.request", "body": body, "more_body": self._more}

    # The response

    async def send(self, message: Message) -> None:
        if self._wire.full and not self.gone:
            await self._wire.drained()
        if self.gone:
            return
        if self.over or (message["type"] == "http.response.start") is self.started:
            raise RuntimeError(f"{message['type']} out of turn")
        if not self.started:
            self._begin(message["status"], message["headers"])
        else:
            self._go_on(message.get("body", b""), message.get("more_body", False))

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self._expects:
            # INVARIANT: who was not told to send its body may leave it out: nobody guesses what comes next.
            self.keep_alive = self._expects = False
        self.started = True
        found, known = [STATUS[status]], False
        for name, value in headers:
            if name == b"content-length":
                known, self._left = True, int(value)
            elif name == b"connection" and value == b"close":
                self.keep_alive = False
                continue
            found += (name, b": ", value, b"\r\n")
        if not self.keep_alive:
            found.append(b"connection: close\r\n")
        if not known:
            self._chunked = True
            found.append(b"transfer-encoding: chunked\r\n")
            # Nobody knows when the first of it comes; a response of known length comes at once.
            asyncio.get_running_loop().call_soon(self.flush)
        found.append(b"\r\n")
        self._head = b"".join(found)

    def flush(self) -> None:
        """What was said so far leaves."""
        head, self._head = self._head, b""
        if head and not self.gone:
            self._wire.write(head)

    def _go_on(self, body: bytes, more: bool) -> None:
        data = body
        if self.scope["method"] == "HEAD":
            data, self._left = b"", 0
        elif self._chunked:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            data = data if more else data + b"0\r\n\r\n"
        else:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("a body of another length than announced")
        head, self._head = self._head, b""
        # Head and body of an answer are one packet.
        if head or data:
            self._wire.write(head + data)
        if not more:
            self.over, self._parts = True, []
            self._tell()
            self._wire.answered(self)
