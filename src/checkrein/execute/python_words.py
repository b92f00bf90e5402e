"""What we say to the workers of Python scripts, and what they say: the messages of their protocol we use.

Its numbers are those of the interpreter's published schema. Knows no process; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from checkrein.execute.python_graph import Graph, held, pair, values
from checkrein.execute.python_wire import (
    BrokenFrameError,
    count,
    fields,
    head,
    message,
    numbers,
    part,
    real,
    text,
    whole,
    words,
)

# The schema these messages are of; a worker that does not speak it says so when it is configured.
_PROTOCOL = 6
_JSON_DIAGNOSTICS = 4
_RECURSION = 1_000
_LONGEST_ASSERT = 120

# What we say


def configure(*, seconds: float, memory: int, checked: bool, stubs: str) -> bytes:
    """A fresh script; sleeping is ours to do."""
    limits = whole(2, memory) + whole(4, _RECURSION) + whole(6, int(seconds * 1e6))
    made = text(1, "main.py") + part(2, limits) + whole(6, _LONGEST_ASSERT) + whole(9, _PROTOCOL)
    if checked:
        made += whole(3, 1) + text(4, stubs) + whole(7, _JSON_DIAGNOSTICS)
    return part(1, made + part(11, part(5, part(2))))


def feed(code: str, *, checked: bool) -> bytes:
    return part(3, text(1, code) + whole(4, not checked) + text(5, "/"))


def answer(number: int, result: Mapping[str, Any]) -> bytes:
    """To the call a script stands at."""
    graph = Graph()
    return part(4, whole(1, number) + part(2, _result(number, result, graph)) + part(3, graph.written()))


def answers(results: Mapping[int, Mapping[str, Any]]) -> bytes:
    """To calls it awaits, or to one it stands at and awaits at once."""
    graph = Graph()
    made = [part(1, whole(1, each) + part(2, _result(each, results[each], graph))) for each in results]
    return part(6, b"".join(made) + part(2, graph.written()))


def unhandled(number: int) -> bytes:
    """There is no such thing here."""
    return part(4, whole(1, number) + part(2, part(5)))


def found(value: Any) -> bytes:
    """What a name stands for; None: nothing."""
    if value is None:
        return part(5, part(3))
    graph = Graph()
    index = graph.add(value)
    return part(5, part(1, graph.written()) + whole(2, index))


def abort(kind: str, why: str) -> bytes:
    """End a script where it stands, whatever it would catch."""
    return part(11, part(1, text(1, kind) + text(2, why)))


def load(state: bytes) -> bytes:
    return part(8, part(1, state))


DUMP, RESET = part(7), part(9)


def _result(number: int, result: Mapping[str, Any], graph: Graph) -> bytes:
    if "return_value" in result:
        return whole(1, graph.add(result["return_value"]))
    if "exc_type" in result:
        return part(2, text(1, result["exc_type"]) + text(2, result["message"]))
    return whole(3, number)


# What they say


class Place(msgspec.Struct, frozen=True):
    """Where in which text, in bytes."""

    filename: str = ""
    start: int = 0
    end: int = 0


class Called(msgspec.Struct, frozen=True):
    """It stands at a call. `awaited`: the value is awaited at once, and nothing else can run meanwhile;
    `owned`: it is the method of an object, of which there are none."""

    number: int
    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    awaited: bool
    owned: bool
    place: Place


class System(msgspec.Struct, frozen=True):
    """It asks something of a system: to sleep, for modules, or for what is not here."""

    number: int
    what: str = ""
    seconds: float = 0.0
    modules: tuple[str, ...] = ()


class Lookup(msgspec.Struct, frozen=True):
    """It reads a name it does not know."""

    name: str
    owned: bool


class Waiting(msgspec.Struct, frozen=True):
    """All of it awaits these calls."""

    numbers: tuple[int, ...]


class Completed(msgspec.Struct, frozen=True):
    """It is through."""

    value: Any


class Frame(msgspec.Struct, frozen=True):
    """One line of a traceback."""

    filename: str
    line: int


class Raised(msgspec.Struct, frozen=True):
    """It ended in an exception."""

    kind: str
    message: str
    frames: tuple[Frame, ...] = ()


class Mistyped(msgspec.Struct, frozen=True):
    """Its types are wrong, so it did not run."""

    diagnostics: str


class Dumped(msgspec.Struct, frozen=True):
    """The worker as bytes."""

    state: bytes


class Done(msgspec.Struct, frozen=True):
    """What was asked for is done."""


class Refused(msgspec.Struct, frozen=True):
    """The worker cannot go on at all, and ends."""

    message: str


Event = Called | System | Lookup | Waiting | Completed | Raised | Mistyped | Dumped | Done | Refused


def printed(data: bytes) -> list[str] | None:
    """What a script printed, where that is all this says; else None. Raises BrokenFrameError."""
    if data[:1] != b"\x0a":
        return None
    ((field, body), *_) = fields(data)
    return [words(dict(message(each)).get(2, b"")) for number, each in message(body) if number == field]


def event(data: bytes) -> Event:
    """What came of a turn; raises BrokenFrameError."""
    # It is said first, and counted after; a worker that does otherwise is understood, too.
    first = head(data)
    for kind, body in [first] if first is not None and first[0] in _READ else fields(data):
        if kind in _READ:
            return _READ[kind](message(body))
    raise BrokenFrameError("nothing we know came of it")


def _called(found: list[tuple[int, Any]]) -> Called:
    name, number, awaited, owned, place = "", 0, False, False, Place()
    arena: Any = b""
    positional: list[int] = []
    pairs = []
    for field, body in found:
        if field == 1:
            name = words(body)
        elif field == 2:
            positional += numbers(body) if isinstance(body, bytes) else [body]
        elif field == 3:
            pairs.append(body)
        elif field == 4:
            number = count(body)
        elif field == 5:
            owned = True
        elif field == 6:
            awaited = bool(body)
        elif field == 7:
            arena = body
        elif field == 8:
            place = _place(body)
    made = values(arena)
    named = dict([_keyword(each, made) for each in pairs])
    return Called(
        number, name, tuple([held(made, each) for each in positional]), named, awaited, owned, place
    )


def _keyword(body: Any, made: list[Any]) -> tuple[str, Any]:
    key, value = pair(body, made)
    if type(key) is not str:
        raise BrokenFrameError("a keyword that is no name")
    return key, value


def _place(body: Any) -> Place:
    filename, start, end = "", 0, 0
    for field, value in message(body):
        if field == 1:
            filename = words(value)
        elif field == 2:
            start = count(value)
        elif field == 3:
            end = count(value)
    return Place(filename, start, end)


def _system(found: list[tuple[int, Any]]) -> System:
    parts = dict(found)
    number = count(parts.get(1, 0))
    for field, what in ((27, "time.sleep"), (28, "asyncio.sleep")):
        if field in parts:
            return System(number, what, seconds=real(dict(message(parts[field])).get(1, bytes(8))))
    for field, what in ((31, "import"), (32, "import_stubs")):
        if field in parts:
            return System(number, what, modules=tuple([words(each) for _, each in message(parts[field])]))
    return System(number)


def _lookup(found: list[tuple[int, Any]]) -> Lookup:
    parts = dict(found)
    return Lookup(words(parts.get(1, b"")), 2 in parts)


def _waiting(found: list[tuple[int, Any]]) -> Waiting:
    made: list[int] = []
    for field, body in found:
        if field == 1:
            made += numbers(body) if isinstance(body, bytes) else [body]
    return Waiting(tuple(made))


def _completed(found: list[tuple[int, Any]]) -> Completed:
    parts = dict(found)
    return Completed(held(values(parts.get(2, b"")), parts.get(1, 0)))


def _raised(found: list[tuple[int, Any]]) -> Raised:
    parts = message(dict(found).get(1, b""))
    kind = next((words(body) for field, body in parts if field == 1), "")
    said = next((words(body) for field, body in parts if field == 2), "")
    return Raised(kind, said, tuple([_frame(body) for field, body in parts if field == 3]))


def _frame(body: Any) -> Frame:
    parts = dict(message(body))
    start = dict(message(parts.get(2, b"")))
    return Frame(words(parts.get(1, b"")), count(start.get(1, 0)))


def _mistyped(found: list[tuple[int, Any]]) -> Mistyped:
    return Mistyped(words(dict(found).get(1, b"")))


def _refused(found: list[tuple[int, Any]]) -> Refused:
    return Refused(words(dict(found).get(1, b"")))


def _done(_found: list[tuple[int, Any]]) -> Done:
    return Done()


def _dumped(found: list[tuple[int, Any]]) -> Dumped:
    state = dict(found).get(1, b"")
    if not isinstance(state, bytes):
        raise BrokenFrameError("a script that is no bytes")
    return Dumped(state)


_READ: dict[int, Callable[[list[tuple[int, Any]]], Event]] = {
    2: _called,
    3: _system,
    4: _lookup,
    5: _waiting,
    6: _completed,
    7: _raised,
    8: _mistyped,
    9: _dumped,
    10: _done,
    11: _refused,
}
