"""What crosses the border of a Python script: arguments out, answers in, the result at the end.

Called by the Python engine. Every value is copied into plain JSON data here, so what is judged is what is
executed; nothing that is not JSON, too large or too deep gets across in either direction.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from checkrein.call import canonical
from checkrein.execute.python_graph import Cycle, Kind, Odd, Shown
from checkrein.execute.sandbox import DEEPEST_VALUE, LARGEST_VALUE, Answer

# So many bytes of JSON come of one that was counted, at most: of a number.
_DENSEST = 32
_LONGEST_ERROR = 16 << 10
_LONG = 16 << 10


class NotPlainError(Exception):
    """Raise when a value cannot cross; the text is for the script's author."""


class TooLargeError(NotPlainError):
    """Raise when a value is JSON, but more of it than may cross."""


class _Copy:
    """One walk over a value; `most` is how many bytes of it are worth looking at."""

    def __init__(self, *, most: int, lenient: bool) -> None:
        self._most = most
        self.left = most
        self._lenient = lenient

    def of(self, value: Any, depth: int = 0) -> Any:
        if depth > DEEPEST_VALUE:
            raise NotPlainError(f"is nested deeper than {DEEPEST_VALUE} levels")
        kind = type(value)
        self._spend(len(value) + 1 if kind is str else 1)
        if kind is dict:
            return self._object(value, depth)
        if kind is list or kind is tuple:
            return [self.of(item, depth + 1) for item in value]
        if kind is str:
            return value
        return self._single(value, kind, depth)

    def _single(self, value: Any, kind: type, depth: int) -> Any:
        if value is None or kind is bool:
            return value
        if kind is int:
            return _whole(value)
        if kind is float:
            if not math.isfinite(value):
                raise NotPlainError(f"holds {value}, which JSON has no word for")
            return value
        if kind is Cycle:
            raise NotPlainError("holds itself")
        if self._lenient:
            return self._near(value, depth)
        if kind is Shown and value.text.startswith("<coroutine"):
            raise NotPlainError("holds a call that was not awaited; write `await` before it")
        raise NotPlainError(f"holds a {_called(value)}; only text, numbers, lists and dicts can be passed")

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in value.items():
            name = self._key(key)
            if name in made:
                raise NotPlainError(f"has the key {name!r} twice once keys are text")
            made[name] = self.of(item, depth + 1)
        return made

    def _key(self, key: Any) -> str:
        if type(key) is str:
            self._spend(len(key) + 3)
            return key
        if self._lenient and (key is None or type(key) in (bool, int, float)):
            return canonical(self.of(key)).decode()
        raise NotPlainError(f"has a key that is not text but a {_called(key)}")

    def _near(self, value: Any, depth: int) -> Any:
        if isinstance(value, Shown):
            self._spend(len(value.text))
            return value.text
        if isinstance(value, Odd) and value.items is not None:
            return [self.of(item, depth + 1) for item in value.items]
        if isinstance(value, Odd) and value.attributes is not None:
            return self._object(value.attributes, depth)
        if isinstance(value, (datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, datetime.timedelta):
            return str(value)
        raise NotPlainError(f"holds a {_called(value)}; return text, numbers, lists and dicts")

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLargeError(f"is larger than {self._most} bytes as JSON")


def _whole(value: int) -> int:
    if -(1 << 63) <= value < 1 << 64:
        return value
    raise NotPlainError("holds a whole number beyond 64 bits; pass it as text")


def _called(value: Any) -> str:
    if isinstance(value, Shown):
        return value.text[:60]
    if isinstance(value, Kind):
        return "type"
    return value.name if isinstance(value, Odd) else type(value).__name__


def plain(value: Any, *, most: int = LARGEST_VALUE, lenient: bool = False) -> Any:
    """The value as JSON data of our own; `lenient` also writes sets, dates and data classes as JSON."""
    copy = _Copy(most=most, lenient=lenient)
    copied = copy.of(value)
    # Written out only where it may be too much: dates and the like count little and are long.
    doubtful = lenient or (most - copy.left) * _DENSEST > most
    if doubtful and len(canonical(copied)) > most:
        raise TooLargeError(f"is larger than {most} bytes as JSON")
    return copied


def is_long(value: Any) -> bool:
    """Whether going through it takes so long that it is done beside the loop."""
    # INVARIANT: only so much of it is looked at: what a script shares within a value has no end outside.
    try:
        _Copy(most=_LONG, lenient=True).of(value)
    except TooLargeError:
        return True
    except NotPlainError:
        return False
    return False


def arguments(name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments: keywords, or one dict."""
    if len(positional) == 1 and not named and type(positional[0]) is dict:
        given: Any = positional[0]
    elif not positional:
        given = dict(named)
    else:
        raise NotPlainError(f"{name}() takes keyword arguments, or one dict")
    try:
        made: dict[str, Any] = plain(given)
    except NotPlainError as error:
        raise type(error)(f"{name}(): what it is called with {error}") from None
    return made


def settled(tool: str, answer: Answer) -> dict[str, Any]:
    """An answer in the sandbox's words: a value, or an exception the script can catch."""
    if answer.denied:
        said = f". A person says: {answer.said[:_LONGEST_ERROR]}" if answer.said else ""
        return {"exc_type": "PermissionError", "message": f"ToolCallDenied: {tool}: {answer.denied}{said}"}
    if answer.error:
        return {"exc_type": "RuntimeError", "message": answer.error[:_LONGEST_ERROR]}
    try:
        return {"return_value": plain(answer.value)}
    except NotPlainError as error:
        return {"exc_type": "RuntimeError", "message": f"{tool}: its result {error}"}
