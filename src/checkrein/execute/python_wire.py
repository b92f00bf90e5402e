"""The bytes between us and the workers of Python scripts: frames, and in them protobuf fields.

Used by the values and the messages above it. What a worker sends is read as a stranger's words.
"""

from __future__ import annotations

import struct
from typing import Any

# A script's whole memory, put away, is the largest thing a worker says.
LARGEST_FRAME = 256 << 20
_LENGTH = struct.Struct("<I")
_LONGEST_NUMBER = 64
_SMALL = tuple(bytes([number]) for number in range(128))
_NUMBER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


class BrokenFrameError(Exception):
    """Raise when what arrived is no message."""


def frame(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


class Reader:
    """Frames out of pieces, in whatever sizes they arrive."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Raises BrokenFrameError."""
        found = []
        self._data += data
        while len(self._data) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._data)
            if size > LARGEST_FRAME:
                raise BrokenFrameError("a frame is too large")
            end = _LENGTH.size + size
            if len(self._data) < end:
                break
            found.append(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return found


# Writing


def varint(number: int) -> bytes:
    if number < 128:
        return _SMALL[number]
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def whole(field: int, number: int) -> bytes:
    """A field that is a number."""
    return varint(field << 3) + varint(number)


def part(field: int, body: bytes = b"") -> bytes:
    """A field that is bytes, text or a message."""
    return varint(field << 3 | _BYTES) + varint(len(body)) + body


def text(field: int, said: str) -> bytes:
    return part(field, encoded(said))


def encoded(said: str) -> bytes:
    """Text as bytes; half a character, which JSON can say, is the sign for one that cannot be shown."""
    try:
        return said.encode()
    except UnicodeEncodeError:
        return said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


# Reading


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Every field with its number: whole numbers as such, all else as bytes. Raises BrokenFrameError."""
    found: list[tuple[int, Any]] = []
    at, end = 0, len(data)
    while at < end:
        number, value, at = _one(data, at)
        found.append((number, value))
    if at > end:
        raise BrokenFrameError("a field is cut off")
    return found


def _one(data: bytes, at: int) -> tuple[int, Any, int]:
    """The field that begins there, and where the next does."""
    try:
        key = data[at]
        at += 1
        if key > 127:
            key, at = _long(data, at, key)
        kind = key & 7
        if kind in (_BYTES, _NUMBER):
            size = data[at]
            at += 1
            if size > 127:
                size, at = _long(data, at, size)
            if kind == _NUMBER:
                return key >> 3, size, at
        else:
            size = _fixed(kind)
    except IndexError:
        raise BrokenFrameError("a field is cut off") from None
    return key >> 3, data[at : at + size], at + size


def head(data: bytes) -> tuple[int, bytes] | None:
    """The first field, where it is a short key and bytes: nothing behind it is looked at."""
    if len(data) < 2 or data[0] > 127 or data[0] & 7 != _BYTES:
        return None
    size, begin = data[1], 2
    if size > 127:
        try:
            size, begin = _long(data, 2, size)
        except IndexError:
            return None
    return (data[0] >> 3, data[begin : begin + size]) if begin + size <= len(data) else None


def parts(data: Any, field: int) -> list[Any]:
    """All there is of one field. Of short messages there may be many: each is cut out right here."""
    if not isinstance(data, bytes):
        raise BrokenFrameError("a number where a message belongs")
    found: list[Any] = []
    key, at, end = field << 3 | _BYTES, 0, len(data)
    while at < end:
        if data[at] == key and at + 1 < end and data[at + 1] < 128:
            begin = at + 2
            at = begin + data[at + 1]
            found.append(data[begin:at])
        else:
            number, value, at = _one(data, at)
            if number == field:
                found.append(value)
    if at > end:
        raise BrokenFrameError("a field is cut off")
    return found


def numbers(data: bytes) -> list[int]:
    """Whole numbers that follow one another."""
    found = []
    at, end = 0, len(data)
    try:
        while at < end:
            number = data[at]
            at += 1
            if number > 127:
                number, at = _long(data, at, number)
            found.append(number)
    except IndexError:
        raise BrokenFrameError("a number is cut off") from None
    return found


def _long(data: bytes, at: int, first: int) -> tuple[int, int]:
    number, shift = first & 127, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (1 << _LONGEST_NUMBER) - 1, at
        shift += 7
        if shift >= _LONGEST_NUMBER + 7:
            raise BrokenFrameError("a number is too long")


def _fixed(kind: int) -> int:
    if kind == _EIGHT:
        return 8
    if kind == _FOUR:
        return 4
    raise BrokenFrameError("a field is of no kind we know")


def words(body: Any) -> str:
    """A field as text; raises BrokenFrameError."""
    if not isinstance(body, bytes):
        raise BrokenFrameError("a number where text belongs")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BrokenFrameError("text is not UTF-8") from None


def message(body: Any) -> list[tuple[int, Any]]:
    """A field as a message; raises BrokenFrameError."""
    if not isinstance(body, bytes):
        raise BrokenFrameError("a number where a message belongs")
    return fields(body)


def count(body: Any) -> int:
    """A field as a number; raises BrokenFrameError."""
    if not isinstance(body, int):
        raise BrokenFrameError("no number where one belongs")
    return body


def real(body: Any) -> float:
    """A field as a floating-point number; raises BrokenFrameError."""
    if not isinstance(body, bytes) or len(body) != 8:
        raise BrokenFrameError("no number where one belongs")
    found: float = struct.unpack("<d", body)[0]
    return found
