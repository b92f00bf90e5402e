"""Where a name's value comes from: scopes, what was written to a name before it is read, and bounded work.

Shared by the previews of both languages; knows no syntax.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

import msgspec

Kind = Literal["direct", "literal", "alias", "indirect", "reference", "dynamic", "eval"]
What = Literal[
    "opaque", "namespace", "tool", "dynamic", "text", "eval", "caller", "builtin", "table", "getter"
]
# A name with more possible values than this says nothing to a person anyway.
MOST_VALUES = 16
MOST_DEPTH = 30
LONGEST_TEXT = 256
_STRIDE = 64


class Unreadable(Exception):  # noqa: N818 - never leaves this layer
    """The text is no script of its language."""


class Overrun(Exception):  # noqa: N818 - never leaves this layer
    """More work than a preview is worth."""


class Value(msgspec.Struct, frozen=True):
    """What an expression may stand for, as far as the text tells."""

    what: What
    name: str = ""
    how: Kind = "direct"


Values = tuple[Value, ...]
OPAQUE = Value("opaque")
DYNAMIC = Value("dynamic")


class Work:
    """What one preview may spend, in steps and in seconds."""

    def __init__(self, steps: int, seconds: float) -> None:
        self.left = steps
        self.until = time.thread_time() + seconds
        self.depth = 0

    def spend(self, steps: int = 1) -> None:
        before = self.left // _STRIDE
        self.left -= steps
        if self.left < 0 or (self.left // _STRIDE != before and time.thread_time() > self.until):
            raise Overrun


class Region:
    """A stretch of a function that runs as a whole or not at all: a body, a branch, a loop."""

    __slots__ = ("around", "depth", "function", "loop")

    def __init__(self, around: Region | None = None, *, function: bool = False, loop: bool = False) -> None:
        self.around = around
        self.function: Region = self if function or around is None else around.function
        self.depth: int = 0 if around is None else around.depth + 1
        outer = None if self.function is self or around is None else around.loop
        # The outermost loop of the same function: what is written later in it may be read earlier.
        self.loop: Region | None = outer or (self if loop else None)

    def holds(self, other: Region, work: Work) -> bool:
        """Whether `other` lies in this stretch."""
        at: Region | None = other
        while at is not None and at.depth > self.depth:
            work.spend()
            at = at.around
        return at is self


class Write:
    """One value given to a name, worked out when it is first needed."""

    __slots__ = ("_source", "_values", "function", "order", "region")

    def __init__(
        self, order: int, region: Region, source: Callable[[], Values], function: object = None
    ) -> None:
        self.order = order
        self.region = region
        self.function = function  # the function's node, where the value is one
        self._source = source
        self._values: Values | None = None

    def values(self, work: Work) -> Values:
        if self._values is None:
            if work.depth >= MOST_DEPTH:
                return (OPAQUE,)
            self._values = ()  # read while it is being worked out: it adds nothing to itself
            work.depth += 1
            try:
                self._values = self._source()
            finally:
                work.depth -= 1
        return self._values


class Binding:
    """A name in its scope, with everything that is ever written to it."""

    __slots__ = ("afar", "home", "initial", "sorted", "writes")

    def __init__(self, home: Region, initial: Value = OPAQUE) -> None:
        self.home = home
        self.initial = initial  # what it is before anything is written
        self.writes: list[Write] = []
        self.afar: list[Write] = []  # written by other functions, so at any time
        self.sorted = True

    def write(self, write: Write, *, afar: bool = False) -> None:
        if afar or write.region.function is not self.home.function:
            self.afar.append(write)
        else:
            self.writes.append(write)
            self.sorted = False

    def read(self, region: Region, order: int, work: Work) -> Values:
        """What the name may be when it is read there."""
        if not self.sorted:
            self.writes.sort(key=lambda write: write.order)
            self.sorted = True
        inside = region.function is self.home.function
        writes, untouched = self._before(region, order, work) if inside else self._ever()
        values: dict[Value, None] = {}
        if untouched and not (self.afar and self.initial is OPAQUE):
            values[self.initial] = None
        for write in [*writes, *self.afar[:MOST_VALUES]]:
            work.spend()
            values.update(dict.fromkeys(write.values(work)))
        return tuple(values)[:MOST_VALUES] or (OPAQUE,)

    def _before(self, region: Region, order: int, work: Work) -> tuple[list[Write], bool]:
        """What was written before, back to the last write that cannot have been skipped."""
        found: list[Write] = []
        untouched = True
        at = bisect_left(self.writes, order + 1, key=lambda write: write.order)
        for write in reversed(self.writes[max(0, at - MOST_VALUES) : at]):
            found.append(write)
            if write.region.holds(region, work):
                untouched = False
                break
        if region.loop is not None:
            later = self.writes[at : at + MOST_VALUES]
            found += [write for write in later if region.loop.holds(write.region, work)]
        return found, untouched

    def _ever(self) -> tuple[list[Write], bool]:
        """Read by another function, so at any time."""
        certain = any(write.region is self.home for write in self.writes)
        return self.writes[-MOST_VALUES:], not certain


class Scope:
    """Names that are visible together."""

    __slots__ = ("around", "function", "hidden", "names", "region")

    def __init__(
        self, around: Scope | None, region: Region, *, function: bool = False, hidden: bool = False
    ) -> None:
        self.around = around
        self.region = region
        self.function = function
        self.hidden = hidden  # a class body: its names are not seen from the functions in it
        self.names: dict[str, Binding] = {}

    def declare(self, name: str, initial: Value = OPAQUE) -> Binding:
        return self.names.setdefault(name, Binding(self.region, initial))

    def find(self, name: str, work: Work) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            work.spend()
            found = scope.names.get(name)
            if found is not None and (scope is self or not scope.hidden):
                return found
            scope = scope.around
        return None


def as_alias(values: Values) -> Values:
    """The same, reached through another name. What nobody can name is reported where it is fetched, once."""
    return tuple(
        Value(value.what, value.name, "alias")
        if value.what in ("tool", "namespace", "caller")
        else OPAQUE
        if value.what == "dynamic"
        else value
        for value in values
    )


def the_text(values: Values) -> str | None:
    """The one text these values are, if they are one."""
    return values[0].name if len(values) == 1 and values[0].what == "text" else None


def joined(parts: list[str | None], separator: str = "") -> Values:
    """Texts put together; unknown as soon as one of them is."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or sum(map(len, known)) + len(separator) * len(parts) > LONGEST_TEXT:
        return (OPAQUE,)
    return (Value("text", separator.join(known)),)


def member(space: Value, name: str | None, *, literal: bool) -> Value:
    """What `space.name` or `space[name]` is when `space` holds the tools."""
    if name is None:
        return DYNAMIC
    how: Kind = "literal" if literal else "direct"
    return Value("tool", name, "alias" if space.how == "alias" else how)


class Places:
    """Line and column of a byte in a text."""

    def __init__(self, text: bytes, ends: re.Pattern[bytes]) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in ends.finditer(text))]

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_left(self.starts, offset + 1)
        start = self.starts[line - 1]
        return line, len(self.text[start:offset].decode(errors="replace"))
