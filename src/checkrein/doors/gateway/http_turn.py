"""One HTTP request and its response, on a connection that answers one after the other. `Talk` makes them."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Protocol

from checkrein.doors.gateway.http_headers import Head

Address = tuple[str, int]
# So much of a body waits to be asked for before reading pauses.
MOST_UNREAD = 64 << 10
STATUS = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_CLOSE = b"connection: close\r\n"


class Wire(Protocol):
    """The connection, as far as a request needs it; `full`: the client is slow to read."""

    full: bool
    address: Address

    def write(self, data: bytes) -> None: ...

    def read_on(self) -> None: ...

    async def drained(self) -> None: ...

    def answered(self, turn: Turn) -> None: ...


class Turn:
    """One request and its response: all at once with `answer`, or `begin` and then `write` to its end.

    `length` is what was announced of the body, -1 where nothing was; `task` is where the request is handled.
    """

    __slots__ = (
        *("_expects", "_fresh", "_more", "_news", "_parts", "_said", "_size", "_wire"),
        *("gone", "head", "keep_alive", "length", "over", "started", "task"),
    )

    def __init__(self, wire: Wire, head: Head, length: int, *, keep_alive: bool, expects: bool) -> None:
        self._wire, self.head, self.length = wire, head, length
        self.keep_alive, self._expects = keep_alive, expects
        self.task: asyncio.Task[None] | None = None
        self._parts: list[bytes] = []
        self._size, self._more, self._fresh = 0, True, False
        self._news: asyncio.Future[None] | None = None
        # Of the response: what was said but has not left.
        self._said = b""
        # Whether the client left, and whether the response has begun and was sent to its end.
        self.gone = self.started = self.over = False

    @property
    def address(self) -> Address:
        return self._wire.address

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
        if self._news is not None:
            news, self._news = self._news, None
            if not news.done():
                news.set_result(None)

    async def part(self) -> tuple[bytes, bool] | None:
        """What came of the body, and whether more does; None when the client left, or has its response."""
        if self._expects:
            self._expects = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._fresh or self.gone or self.over):
            self._wire.read_on()
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self.gone or self.over:
            return None
        parts, self._parts, self._size, self._fresh = self._parts, [], 0, False
        return parts[0] if len(parts) == 1 else b"".join(parts), self._more

    # The response

    async def answer(self, status: int, lines: bytes, body: bytes, *, last: bool = False) -> None:
        """A whole response. `lines` are headers as they are sent; `last`: the connection ends with it."""
        if self._wire.full:
            await self._room()
        if self._begun(last):
            said = b"%b%bcontent-length: %d\r\n%b\r\n"
            head = said % (STATUS[status], lines, len(body), b"" if self.keep_alive else _CLOSE)
            # Head and body of an answer are one packet.
            self._end(head if self.head.method == "HEAD" else head + body)

    async def begin(self, status: int, lines: bytes) -> None:
        """A response that comes bit by bit."""
        if self._wire.full:
            await self._room()
        if self._begun(last=False):
            close = b"" if self.keep_alive else _CLOSE
            self._said = b"%b%b%btransfer-encoding: chunked\r\n\r\n" % (STATUS[status], lines, close)
            # Nobody knows when the first of it comes.
            asyncio.get_running_loop().call_soon(self.flush)

    async def _room(self) -> None:
        """Until what was said before has been read, as far as anybody reads."""
        if not self.gone:
            await self._wire.drained()

    def _begun(self, last: bool) -> bool:
        """Whether there is anybody to respond to."""
        if self.gone:
            return False
        if self.started:
            raise RuntimeError("a second response to one request")
        self.started = True
        if last or self._expects:
            # INVARIANT: who was not told to send its body may leave it out: nobody guesses what comes next.
            self.keep_alive = self._expects = False
        return True

    async def write(self, body: bytes, *, more: bool) -> None:
        """More of a response that has begun."""
        if self._wire.full:
            await self._room()
        if self.gone:
            return
        if self.over or not self.started:
            raise RuntimeError("a body without its head")
        data = b"" if self.head.method == "HEAD" or not body else b"%x\r\n%b\r\n" % (len(body), body)
        if more:
            self._said += data
            self.flush()
        else:
            end = b"" if self.head.method == "HEAD" else b"0\r\n\r\n"
            said, self._said = self._said, b""
            self._end(said + data + end)

    def flush(self) -> None:
        """What was said so far leaves."""
        said, self._said = self._said, b""
        if said and not self.gone:
            self._wire.write(said)

    def _end(self, data: bytes) -> None:
        if data:
            self._wire.write(data)
        self.over, self._parts = True, []
        self._tell()
        self._wire.answered(self)
