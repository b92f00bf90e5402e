"""How much of an endpoint's answer is taken in: it is read as it comes, and what never ends is cut off.

`network` puts it around every answer, before any library sees a byte. Importing this loads httpx2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import httpx2

# One event of a stream, or a whole answer that is none.
LARGEST = 8 << 20
# A stream: the longest answer of a model, each of its words in an event of its own.
LONGEST = 512 << 20
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_TAIL = 3
# The answers that were begun for whoever asks in this task.
_begun: ContextVar[list[Bounded] | None] = ContextVar("begun", default=None)


class Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer. INVARIANT: no endpoint fills memory, whatever it sends."""

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_stream: bool) -> None:
        self._stream, self._most = stream, LONGEST if is_stream else LARGEST
        self._pieces: AsyncIterator[bytes] | None = None
        self._length, self._event, self._tail = 0, 0, b""

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._pieces = aiter(self._stream)
        return self

    # No generator: whoever hangs up is heard by the connection at once.
    async def __anext__(self) -> bytes:
        assert self._pieces is not None  # noqa: S101 - asked for just before
        piece = await anext(self._pieces)
        self._length += len(piece)
        self._event = _since_an_end(self._tail + piece, self._event + len(piece))
        self._tail = (self._tail + piece)[-_TAIL:]
        if self._length > self._most or self._event > LARGEST:
            raise httpx2.DecodingError("The answer is larger than any model's.")
        return piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def bounded(response: httpx2.Response) -> httpx2.Response:
    """The same answer, of which only so much is read; one packed small could be of any size unpacked."""
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise httpx2.DecodingError("The answer is packed, though it was asked for as it is.")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Some local endpoints stream and call it something else.
    is_stream = response.is_success and kind != "application/json"
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - it came over an async transport
    response.stream = made = Bounded(response.stream, is_stream=is_stream)
    if (begun := _begun.get()) is not None:
        begun.append(made)
    return response


@contextmanager
def noting() -> Iterator[list[Bounded]]:
    """Whatever is begun meanwhile, for who has to hang up at the end, however that comes."""
    begun: list[Bounded] = []
    token = _begun.set(begun)
    try:
        yield begun
    finally:
        _begun.reset(token)


async def hang_up(begun: list[Bounded]) -> None:
    """INVARIANT: nobody goes on talking to us, at our expense, whom nobody listens to any more."""
    for each in begun:
        # One that ended by itself has nothing left to close.
        with suppress(Exception):
            await each.aclose()


def _since_an_end(piece: bytes, otherwise: int) -> int:
    """How long the last event is so far."""
    at = max(piece.rfind(each) for each in _ENDS)
    return len(piece) - at if at >= 0 else otherwise
