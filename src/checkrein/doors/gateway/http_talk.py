"""HTTP/1.1 on one connection: httptools reads requests, which are answered one after the other.

A head that comes again is known by its letters. `Line` holds the connection to our limits. The application
is called with each request, in a task of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

import httptools

from checkrein.doors.gateway.http_again import Again, remembered
from checkrein.doors.gateway.http_headers import Head, length, path_of
from checkrein.doors.gateway.http_turn import STATUS, Address, Turn

App = Callable[[Turn], Coroutine[Any, Any, None]]
# Headers, trailers and whatever else is no body, before more of it ends the connection.
LARGEST_HEAD = 64 << 10
# Headers of one request that are held at all, each of which takes far more room than it has letters.
MOST_LINES = 512
# Requests that were sent before the one in front of them was answered.
MOST_BEHIND = 64
# Headers that say how a request is read.
_HEEDED = frozenset({b"content-length", b"expect", b"transfer-encoding"})
_UNREADABLE = b"Invalid HTTP request received."
_REFUSAL = (
    STATUS[400]
    + b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n" % len(_UNREADABLE)
    + b"connection: close\r\n\r\n"
    + _UNREADABLE
)


class Talk(asyncio.Protocol):
    """The protocol of one connection."""

    _loop: asyncio.AbstractEventLoop

    def __init__(self, app: App, tasks: set[asyncio.Task[None]]) -> None:
        self._app, self._tasks = app, tasks
        self._transport: asyncio.Transport | None = None
        self._parser = _parser_for(self)
        self.address: Address = ("", 0)
        self._url, self._headers, self._expects, self._length = b"", list[tuple[bytes, bytes]](), False, -1
        # Whether the parser stands between two requests; what it was given there.
        self._between, self._fed = True, b""
        # The last head, if it may come again; how much is to come of the body behind one that did.
        self._again: Again | None = None
        self._owed = 0
        # The request being read; the one being answered, and those behind it.
        self._read: Turn | None = None
        self._turn: Turn | None = None
        self._behind: deque[Turn] = deque()
        # How much came that was no body since the last head was whole; whether nothing more is read.
        self._loose, self._deaf = 0, False
        self._paused = False
        self.full = False
        self._drained: asyncio.Future[None] | None = None

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self.address = transport.get_extra_info("peername")[:2]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        self._transport = None
        for turn in (self._read, self._turn, *self._behind):
            if turn is not None:
                turn.lose()
        self._behind.clear()
        self.resume_writing()

    def eof_received(self) -> None:
        """The transport closes by itself."""

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._loose += len(data)
        if self._again is not None and self._between:
            data = self._by_heart(data, self._again)
            if not data:
                return
        self._fed = data if self._between else b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as wish:
            self._without_upgrade(data[wish.args[0] :])
        except httptools.HttpParserError:
            self._spoilt()
        else:
            # INVARIANT: headers and trailers without end are cut, also while an earlier request is answered.
            if self._loose > LARGEST_HEAD or len(self._headers) > MOST_LINES:
                self._spoilt()

    def _by_heart(self, data: bytes, again: Again) -> bytes:
        """Take a request whose head was read before; what is left is for the parser, which saw none of it."""
        start = 0
        if not self._owed:
            # INVARIANT: that is for requests that come alone; who sends ahead is read by the parser.
            found = again.find(data) if self._turn is None or self._turn.over else None
            if found is None:
                return data
            self._owed, start = found
            self._take(Turn(self, again.head, self._owed, keep_alive=True, expects=False))
        body = data[start : start + self._owed]
        self._owed -= len(body)
        if body:
            self.on_body(body)
        if not self._owed:
            self.on_message_complete()
        return data[start + len(body) :]

    def _without_upgrade(self, rest: bytes) -> None:
        """Nothing here is upgraded to. INVARIANT: the body of who wishes it is a body, and no request."""
        old = self._parser
        closes = any(b"close" in value.lower() for name, value in self._headers if name == b"connection")
        head = [b"%b %b HTTP/%b\r\n" % (old.get_method(), self._url, old.get_http_version().encode())]
        for name, value in self._headers:
            if name not in (b"connection", b"upgrade"):
                head.append(b"%b: %b\r\n" % (name, value))
        head.append(b"connection: close\r\n\r\n" if closes else b"\r\n")
        self._parser = _parser_for(self)
        self.data_received(b"".join(head) + rest)

    def _spoilt(self) -> None:
        """What came cannot be read. INVARIANT: that is said in its turn, never within another response."""
        self._deaf, self._headers = True, []
        unread, self._read = self._read, None
        if unread is not None and unread is self._turn:
            self._end(b"" if unread.started else _REFUSAL)
            return
        if unread is not None:
            self._behind.remove(unread)
        if self._turn is None or self._turn.over:
            self._end(_REFUSAL)

    def _end(self, word: bytes) -> None:
        if word:
            self.write(word)
        self.close()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    async def drained(self) -> None:
        """Until the client has read enough, or left."""
        while self.full:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def shutdown(self) -> None:
        """Let the response under way leave, and nothing come after it."""
        if self._turn is None or self._turn.over:
            self.close()
        else:
            self._turn.keep_alive = False

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def read_on(self) -> None:
        if self._paused and self._transport is not None and not self._behind:
            self._paused = False
            self._transport.resume_reading()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    # What the parser says

    def on_message_begin(self) -> None:
        self._url, self._headers, self._expects, self._length = b"", [], False, -1
        self._between = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _HEEDED:
            self._heed(name, value.strip().lower())
        self._headers.append((name, value))

    def _heed(self, name: bytes, value: bytes) -> None:
        if name == b"expect":
            self._expects = value == b"100-continue"
        elif name == b"content-length":
            self._length = length(value)
        elif value != b"chunked":
            raise ValueError("a body in an encoding nobody reads here")

    def on_headers_complete(self) -> None:
        parser, self._loose, self._again = self._parser, 0, None
        path = "/mcp" if self._url == b"/mcp" else path_of(self._url, self._headers)
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                raise ValueError("nobody is connected to anything here")
            # It comes again, without this wish.
            return
        if len(self._behind) >= MOST_BEHIND or len(self._headers) > MOST_LINES:
            raise ValueError("more than anybody sends")
        head = Head(parser.get_method().decode("ascii"), path, self._headers)
        # INVARIANT: what comes behind a body (trailers) is no header of its request.
        self._headers = []
        new = parser.get_http_version() == "1.1"
        keep = new and parser.should_keep_alive()
        if keep:
            self._again = remembered(self._fed, head)
        # What comes behind it in one piece with it begins somewhere else.
        self._fed = b""
        self._take(Turn(self, head, self._length, keep_alive=keep, expects=new and self._expects))

    def on_body(self, body: bytes) -> None:
        turn, self._loose = self._read, 0
        if turn is not None and not turn.over and turn.feed(body):
            self._pause()

    def on_message_complete(self) -> None:
        turn, self._read, self._between = self._read, None, True
        if turn is not None and not turn.over:
            turn.complete()

    # One request after the other

    def _take(self, turn: Turn) -> None:
        self._read, self._loose = turn, 0
        if self._turn is None or self._turn.over:
            self._start(turn)
        else:
            # INVARIANT: who sends before it was answered is not read any further.
            self._behind.append(turn)
            self._pause()

    def _start(self, turn: Turn) -> None:
        self._turn = turn
        turn.task = self._loop.create_task(self._run(turn))
        self._tasks.add(turn.task)

    async def _run(self, turn: Turn) -> None:
        try:
            # Whatever it is, its client hears that nothing comes; `suppress` takes longer.
            try:  # noqa: SIM105
                await self._app(turn)
            except BaseException:  # noqa: BLE001, S110
                pass
            if not (turn.over or turn.gone):
                await self._leave(turn)
        finally:
            if turn.task is not None:
                self._tasks.discard(turn.task)

    async def _leave(self, turn: Turn) -> None:
        """Nobody says more to this request."""
        if turn.started:
            turn.flush()
            self.close()
        else:
            await turn.answer(500, b"", b"", last=True)

    def answered(self, turn: Turn) -> None:
        """A response was sent to its end: the next one's turn."""
        if not turn.keep_alive:
            self.close()
        elif self._transport is not None and not self._transport.is_closing():
            if self._behind:
                self._start(self._behind.popleft())
            elif self._deaf:
                self._end(_REFUSAL)
                return
            self.read_on()


def _parser_for(talk: Talk) -> Any:
    parser = httptools.HttpRequestParser(talk)
    # A request after one that said it was the last is not read, and spoils nothing.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
