"""What servers answer over HTTP, decoded by us; the `mcp` package sees a stand-in for each message.

Its own decoder refuses or changes values that are valid JSON. The transport wraps response bodies in here,
and the pipe takes the messages out again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from checkrein.doors.gateway.messages import (
    LARGEST,
    MalformedError,
    Message,
    decode_from_server,
    encode,
    is_request,
)
from checkrein.doors.gateway.pipes import LOST

# Messages on their way through the package; the oldest are dropped beyond so many bytes.
MOST_KEPT = 4 * LARGEST
_KEY = "checkrein/kept"
_SHOWN = 200
# What keeping a line takes besides its text.
_LINE_BYTES = 16
_Keep = Callable[[bytes], bytes | None]


class KeptMessages:
    """Decoded messages of one connection, each until the package hands over its stand-in."""

    def __init__(self, respond: Callable[[Message], None]) -> None:
        """`respond` answers a request of the server's that cannot be read."""
        self._respond = respond
        self._messages: dict[int, tuple[Message, int]] = {}
        self._last = self._size = 0

    def keep(self, raw: bytes) -> bytes | None:
        """The stand-in for a message, of its kind and with its id; None where nothing is to be passed on."""
        try:
            message = decode_from_server(raw, self._respond)
        except MalformedError:
            # The package says what it makes of it; it must not read what we do not.
            return b"?" + raw[:_SHOWN].replace(b"\n", b" ")
        if message is None:
            return None
        self._last = number = self._last + 1
        self._messages[number] = message, len(raw)
        self._size += len(raw)
        while self._size > MOST_KEPT:
            self._drop(next(iter(self._messages)))
        return encode(_stand_in(message, {_KEY: number}))

    def keep_error(self, raw: bytes) -> bytes | None:
        """The same for an answer whose status says that it failed: of it only an error is passed on."""
        return self.keep(raw) if b'"error"' in raw else raw

    def take(self, found: JSONRPCMessage) -> Message | None:
        """The message that was kept; None for what the package made up itself."""
        number = _number(found)
        if number is None:
            return None
        if not isinstance(found, JSONRPCResponse | JSONRPCError):
            return self._drop(number) if number in self._messages else None
        kept = (
            self._drop(number) if number in self._messages else {LOST: "the answer came with too many others"}
        )
        # On the stream of a request its answer is its own, whatever id it came with.
        return {"jsonrpc": "2.0", **kept, "id": found.id}

    def _drop(self, number: int) -> Message:
        message, size = self._messages.pop(number)
        self._size -= size
        return message


def _stand_in(message: Message, kept: Message) -> Message:
    made: Message = {"jsonrpc": "2.0"}
    if "method" in message:
        made |= {"method": message["method"], "params": kept}
        return {**made, "id": message["id"]} if is_request(message) else made
    made["id"] = message["id"]
    if "result" in message:
        return {**made, "result": kept}
    return {**made, "error": {"code": 0, "message": "", "data": kept}}


def _number(found: JSONRPCMessage) -> int | None:
    held: Any
    if isinstance(found, JSONRPCResponse):
        held = found.result
    elif isinstance(found, JSONRPCError):
        held = found.error.data
    else:
        held = found.params
    number = held.get(_KEY) if isinstance(held, dict) and len(held) == 1 else None
    return number if isinstance(number, int) else None


class JsonBody(httpx2.AsyncByteStream):
    """A response that is one message."""

    def __init__(self, inner: httpx2.AsyncByteStream, keep: _Keep) -> None:
        self._inner, self._keep = inner, keep

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raw = b"".join([chunk async for chunk in self._inner])
        yield self._keep(raw) or b"?"

    async def aclose(self) -> None:
        await self._inner.aclose()


class EventBody(httpx2.AsyncByteStream):
    """A response that is a stream of events, some of them messages."""

    def __init__(self, inner: httpx2.AsyncByteStream, keep: _Keep) -> None:
        self._inner, self._keep = inner, keep
        # The lines of an event whose end has not come, and the beginning of the next line.
        self._lines: list[bytes] = []
        self._part: list[bytes] = []
        self._held = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        returned = False
        async for chunk in self._inner:
            # A return that ends a chunk may be half of a line's end.
            data = b"\r" + chunk if returned else chunk
            returned = data.endswith(b"\r")
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if found := self._read(data):
                yield found
        if returned and (found := self._read(b"\n")):
            yield found

    def _read(self, data: bytes) -> bytes:
        """The events that are whole by now."""
        first, *others = data.split(b"\n")
        self._add(first)
        found = []
        for each in others:
            line, self._part = b"".join(self._part), []
            if not line:
                found.append(self._rewritten(self._lines))
                self._lines, self._held = [], 0
            elif line.startswith(b":"):
                # A comment, which says that the server is still there.
                self._held -= len(line)
            else:
                self._lines.append(line)
                self._held += _LINE_BYTES
            self._add(each)
        return b"".join(found)

    def _add(self, part: bytes) -> None:
        self._part.append(part)
        self._held += len(part)
        # INVARIANT: of an event that does not end no more is held than a message may have.
        if self._held > LARGEST:
            raise httpx2.SSEError(f"The server sent an event of more than {LARGEST:,} bytes.")

    def _rewritten(self, lines: list[bytes]) -> bytes:
        fields = [_field(line) for line in lines]
        kind = next((value for name, value in reversed(fields) if name == b"event"), b"")
        data = [value for name, value in fields if name == b"data"]
        if kind in (b"", b"message") and any(data):
            lines = [line for line, (name, _) in zip(lines, fields, strict=True) if name != b"data"]
            stand_in = self._keep(b"\n".join(data))
            lines += [] if stand_in is None else [b"data: " + stand_in]
        return b"\n".join([*lines, b"", b""]) if lines else b""

    async def aclose(self) -> None:
        await self._inner.aclose()


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")
