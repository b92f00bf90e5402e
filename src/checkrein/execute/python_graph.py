"""Values on their way to and from the workers of Python scripts: nodes in a list, each after what it holds.

Used by the messages; what is no JSON is named here and judged elsewhere. A worker's nodes are a stranger's.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from checkrein.execute.python_wire import (
    BrokenFrameError,
    count,
    encoded,
    fields,
    message,
    numbers,
    part,
    parts,
    real,
    text,
    varint,
    whole,
    words,
)

# Which field of a node says what it is.
_NONE, _BOOL, _INT, _BIG, _FLOAT, _STR, _BYTES, _LIST, _TUPLE = 2, 4, 5, 6, 7, 8, 9, 11, 12
_DICT, _SET, _FROZEN, _DATE, _TIME, _DATETIME, _DELTA = 14, 15, 16, 17, 18, 19, 20
_EXCEPTION, _TYPE, _INSTANCE, _FUNCTION, _BUILTIN, _REPR, _CYCLE, _MODULE = 22, 23, 24, 25, 26, 29, 30, 32
# The others, by what scripts call them.
_CALLED = {1: "ellipsis", 3: "NotImplementedType", 13: "named tuple", 21: "timezone", 27: "path", 28: "file"}
_CALLED |= {_BYTES: "bytes", 31: "complex", _MODULE: "module"}
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_KEYS = frozenset((str, int, float, bool, type(None)))


class Odd(msgspec.Struct, frozen=True, eq=False):
    """Something of a script's that is no JSON: what it is called, a set's items, a data class's fields."""

    name: str
    items: list[Any] | None = None
    attributes: dict[Any, Any] | None = None


class Kind(msgspec.Struct, frozen=True, eq=False):
    """A type, and whether it is a data class."""

    name: str
    data: bool


class Shown(msgspec.Struct, frozen=True):
    """Something of which only the text crosses: a function, a range, a call nobody awaited."""

    text: str


class Cycle(msgspec.Struct, frozen=True):
    """Where a value holds itself."""


class Function(msgspec.Struct, frozen=True):
    """A function of ours, by the name its calls report."""

    name: str


class Module(msgspec.Struct, frozen=True):
    """A module of ours: its functions, by the names scripts find them under."""

    name: str
    id: bytes
    functions: dict[str, Function]


# Writing

# What stands before a short text, by its length: the node, its size, text, its length.
_SHORT = 126
_TEXTS = tuple([bytes((0x12, size + 2, 0x42, size)) for size in range(_SHORT)])


class Graph:
    """Values on their way to a worker. Around every call, so text and objects are written in few steps."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []

    def add(self, value: Any) -> int:
        """The value's number among the nodes; JSON, functions and modules have one."""
        kind = type(value)
        if kind is str:
            body = encoded(value)
            size = len(body)
            made = _TEXTS[size] + body if size < _SHORT else part(2, part(_STR, body))
        elif kind is dict:
            made = part(2, part(_DICT, self._pairs(value.items())))
        elif kind is list:
            made = part(2, part(_LIST, part(1, b"".join([varint(self.add(item)) for item in value]))))
        else:
            made = part(2, self._single(value, kind))
        self._nodes.append(made)
        return len(self._nodes) - 1

    def written(self) -> bytes:
        return whole(1, len(self._nodes)) + b"".join(self._nodes)

    def _pairs(self, items: Iterable[tuple[str, Any]]) -> bytes:
        add, made = self.add, []
        for key, item in items:
            first, second = add(key), add(item)
            if second < 128:
                made.append(bytes((0x0A, 4, 0x08, first, 0x10, second)))
            else:
                made.append(part(1, whole(1, first) + whole(2, second)))
        return b"".join(made)

    def _single(self, value: Any, kind: type) -> bytes:
        if value is None:
            return part(_NONE)
        if kind is bool:
            return whole(_BOOL, value)
        if kind is int:
            return _whole(value)
        if kind is float:
            return varint(_FLOAT << 3 | 1) + struct.pack("<d", value)
        if kind is Function:
            return part(_FUNCTION, text(1, value.name))
        if kind is Module:
            held = part(3, self._pairs(value.functions.items()))
            return part(_MODULE, text(1, value.name) + part(2, part(1, value.id)) + held)
        raise TypeError(f"{kind.__name__} cannot be given to a script")


def _whole(value: int) -> bytes:
    if _SMALLEST <= value <= _LARGEST:
        return whole(_INT, value << 1 if value >= 0 else (-value << 1) - 1)
    size = abs(value)
    return part(_BIG, whole(1, value < 0) + part(2, size.to_bytes((size.bit_length() + 7) // 8, "big")))


# Reading


def values(body: Any) -> list[Any]:
    """The values of all nodes; raises BrokenFrameError."""
    made: list[Any] = []
    for node in parts(body, 2):
        made.append(_PLAINEST[node] if node in _PLAINEST else _value(node, made))
    return made


def held(made: list[Any], index: Any) -> Any:
    """One of them; raises BrokenFrameError for one that is not there (yet)."""
    if not isinstance(index, int) or index >= len(made):
        raise BrokenFrameError("a value that is not there")
    return made[index]


def pair(body: Any, made: list[Any]) -> tuple[Any, Any]:
    key = value = 0
    for field, index in message(body):
        if field == 1:
            key = index
        elif field == 2:
            value = index
    return held(made, key), held(made, value)


def _value(body: Any, made: list[Any]) -> Any:
    found = message(body)
    if len(found) != 1:
        raise BrokenFrameError("a value is of one kind")
    kind, value = found[0]
    if kind == _STR:
        return words(value)
    if kind == _INT:
        number = count(value)
        return -(number >> 1) - 1 if number & 1 else number >> 1
    try:
        read = _READ[kind]
    except KeyError:
        return Odd(_CALLED.get(kind, "value"))
    try:
        return read(value, made)
    except (TypeError, ValueError, OverflowError):
        # A day that is none, a number where a message belongs.
        raise BrokenFrameError("a value that cannot be") from None


def _items(body: Any, made: list[Any]) -> list[Any]:
    found: list[Any] = []
    for field, value in message(body):
        if field == 1:
            try:
                found += [made[index] for index in (numbers(value) if isinstance(value, bytes) else [value])]
            except IndexError:
                raise BrokenFrameError("a value that is not there") from None
    return found


def _dict(body: Any, made: list[Any]) -> dict[Any, Any]:
    found = [pair(each, made) for field, each in message(body) if field == 1]
    # INVARIANT: nothing a script nested is hashed here: how deep it goes is its own choice.
    return {key if type(key) in _KEYS else Odd(type(key).__name__): item for key, item in found}


def _big(body: Any, _made: list[Any]) -> int:
    found = dict(message(body))
    size = int.from_bytes(found.get(2, b""), "big")
    return -size if found.get(1) else size


def _of(body: Any, *names: str) -> dict[str, int]:
    """The whole numbers of a message, by the names of its fields."""
    found = dict(message(body))
    return {name: _signed(count(found.get(field, 0))) for field, name in enumerate(names, 1)}


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _date(body: Any, _made: list[Any]) -> datetime.date:
    return datetime.date(**_of(body, "year", "month", "day"))


_CLOCK = ("hour", "minute", "second", "microsecond")


def _time(body: Any, _made: list[Any]) -> datetime.time:
    return datetime.time(**_of(body, *_CLOCK), tzinfo=_zone(body, 5))


def _datetime(body: Any, _made: list[Any]) -> datetime.datetime:
    return datetime.datetime(**_of(body, "year", "month", "day", *_CLOCK), tzinfo=_zone(body, 8))


def _zone(body: Any, field: int) -> datetime.timezone | None:
    offset = dict(fields(body)).get(field)
    return None if offset is None else datetime.timezone(datetime.timedelta(seconds=_signed(count(offset))))


def _delta(body: Any, _made: list[Any]) -> datetime.timedelta:
    return datetime.timedelta(**_of(body, "days", "seconds", "microseconds"))


def _named(body: Any, _made: list[Any]) -> Odd:
    return Odd(words(dict(message(body)).get(1, b"")))


def _type(body: Any, _made: list[Any]) -> Kind:
    found = dict(message(body))
    return Kind(words(found.get(1, b"")), bool(found.get(4)))


def _instance(body: Any, made: list[Any]) -> Odd:
    found = dict(message(body))
    kind = held(made, found.get(1, 0))
    if not isinstance(kind, Kind):
        raise BrokenFrameError("an instance of no class")
    return Odd(kind.name, attributes=_dict(found.get(3, b""), made) if kind.data else None)


# What there may be many of, as it is written: looked up, not read.
_PLAINEST: dict[bytes, Any] = {
    part(_NONE): None,
    whole(_BOOL, 0): False,
    whole(_BOOL, 1): True,
    part(_STR): "",
    **{_whole(number): number for number in range(-64, 1_024)},
}
_READ: dict[int, Callable[[Any, list[Any]], Any]] = {
    _NONE: lambda _body, _made: None,
    _BOOL: lambda body, _made: bool(count(body)),
    _BIG: _big,
    _FLOAT: lambda body, _made: real(body),
    _LIST: _items,
    _TUPLE: lambda body, made: tuple(_items(body, made)),
    _DICT: _dict,
    _SET: lambda body, made: Odd("set", _items(body, made)),
    _FROZEN: lambda body, made: Odd("frozenset", _items(body, made)),
    _DATE: _date,
    _TIME: _time,
    _DATETIME: _datetime,
    _DELTA: _delta,
    _EXCEPTION: _named,
    _TYPE: _type,
    _INSTANCE: _instance,
    _FUNCTION: lambda body, _made: Shown(words(dict(message(body)).get(1, b""))),
    _BUILTIN: lambda body, _made: Odd(words(body)),
    _REPR: lambda body, _made: Shown(words(body)),
    _CYCLE: lambda _body, _made: Cycle(),
}
