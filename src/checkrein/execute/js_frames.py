"""How we and the workers of JavaScript scripts talk: frames of a JSON head and a body, over a socket.

Used on both sides; what a worker sends is read as a stranger's words.
"""

from __future__ import annotations

import json
import struct
from typing import Any

_LENGTHS = struct.Struct(">II")
LARGEST_HEAD, LARGEST_BODY = 16 << 20, 160 << 20

Frame = tuple[dict[str, Any], bytes]


class BrokenFrameError(Exception):
    """Raise when what arrived is no frame."""


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    written = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((_LENGTHS.pack(len(written), len(body)), written, body))


class Reader:
    """Frames out of pieces, in whatever sizes they arrive."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        self._data += data
        found = []
        while (frame := self._next()) is not None:
            found.append(frame)
        return found

    def _next(self) -> Frame | None:
        if len(self._data) < _LENGTHS.size:
            return None
        head, body = _LENGTHS.unpack_from(self._data)
        if head > LARGEST_HEAD or body > LARGEST_BODY:
            raise BrokenFrameError("a frame is too large")
        middle, end = _LENGTHS.size + head, _LENGTHS.size + head + body
        if len(self._data) < end:
            return None
        frame = _head(bytes(self._data[_LENGTHS.size : middle])), bytes(self._data[middle:end])
        del self._data[:end]
        return frame


def _head(written: bytes) -> dict[str, Any]:
    try:
        head = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise BrokenFrameError("a frame's head is no JSON") from error
    if not isinstance(head, dict):
        raise BrokenFrameError("a frame's head is no object")
    return head
