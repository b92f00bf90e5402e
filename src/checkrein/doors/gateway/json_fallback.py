"""Reads JSON that msgspec rejects although it is valid, and writes text that msgspec cannot write.

`messages` calls it after msgspec failed, so ordinary messages never come here. Decides nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any, NoReturn

import msgspec

# Values nested this deep can always be read; deeper ones depend on how much stack is left.
DEEPEST = 500
TOO_LARGE = "a number that JSON readers cannot hold"
NOT_UNICODE = "text that is not Unicode (half a surrogate pair)"
TOO_DEEP = f"values nested deeper than {DEEPEST} levels"
# Brackets, commas, names and scalars that are looked at one by one.
MOST_TOKENS = 250_000

_BLANK = re.compile(r"[ \t\n\r]*")
_CLOSES = {"{": "}", "[": "]"}
_encode = msgspec.json.Encoder().encode
# In place of a number that cannot be held: never an id, a text or an object.
_UNHELD = math.nan


def _no_json(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _whole_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return _UNHELD


# msgspec says no to a number beyond every float, which Python would read as infinite.
_whole = json.JSONDecoder(parse_constant=_no_json, parse_float=msgspec.json.Decoder().decode)
_scalar = json.JSONDecoder(parse_constant=_no_json, parse_int=_whole_number)
# For values whose numbers do not matter: `float` takes any number of digits, and fast.
_skip = json.JSONDecoder(parse_constant=_no_json, parse_int=float)


class Reading(msgspec.Struct, frozen=True):
    """A JSON value; `fault` names what in it is unusual. Not `whole`: it is an outline of the top level."""

    value: Any
    fault: str = ""
    whole: bool = True


def read(raw: bytes) -> Reading:
    """The value of a JSON text in UTF-8; raises ValueError where it is none."""
    text = raw.decode()
    try:
        value = _whole.decode(text)
    except RecursionError:
        return Reading(_outline(text), TOO_DEEP, whole=False)
    except json.JSONDecodeError:
        raise
    except (msgspec.ValidationError, ValueError):
        return Reading(_outline(text), TOO_LARGE, whole=False)
    try:
        _encode(value)
    except UnicodeEncodeError:
        return Reading(value, NOT_UNICODE)
    return Reading(value)


def write(value: Any) -> bytes:
    """JSON with half a surrogate pair as the escape it was read from; the rest is as msgspec writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def replace_surrogates(value: Any) -> Any:
    """The value with U+FFFD for each half of a surrogate pair; the very same where there is none."""
    # What is nested too deeply to be looked at is found out by whoever writes it.
    with contextlib.suppress(RecursionError):
        try:
            _encode(value)
        except UnicodeEncodeError:
            text = json.dumps(value, ensure_ascii=False)
            return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return value


def _outline(text: str) -> dict[str, Any]:
    """The top level of an object: its scalars as they are, an empty object or list for every other value.

    Reads all of the text, because a name may come twice and what follows may be no JSON.
    """
    # INVARIANT: a hostile text costs time in proportion to its length, and no recursion of ours.
    found: dict[str, Any] = {}
    closing: list[str] = []
    name, state, at = "", "value", 0
    for _ in range(MOST_TOKENS):
        at = _after_blank(text, at)
        char = text[at : at + 1]
        if state in ("value", "first value") and char in _CLOSES:
            if len(closing) == 1:
                found[name] = {} if char == "{" else []
                if (end := _end_of(text, at)) is not None:
                    state, at = "next", end
                    continue
            elif not closing and char != "{":
                raise ValueError("not an object")
            closing.append(_CLOSES[char])
            state, at = ("first name" if char == "{" else "first value"), at + 1
        elif state in ("first name", "first value", "next") and closing and char == closing[-1]:
            closing.pop()
            state, at = "next", at + 1
            if not closing:
                if _after_blank(text, at) != len(text):
                    raise ValueError("more than one value")
                return found
        elif state == "next" and char == ",":
            state, at = ("name" if closing[-1] == "}" else "value"), at + 1
        elif state in ("name", "first name") and char == '"':
            said, at = _scalar.raw_decode(text, at)
            at = _after_blank(text, at)
            if text[at : at + 1] != ":":
                raise ValueError("a name without a value")
            name, state, at = said if len(closing) == 1 else name, "value", at + 1
        elif state in ("value", "first value") and closing:
            said, at = _scalar.raw_decode(text, at)
            state = "next"
            if len(closing) == 1:
                found[name] = said
        else:
            raise ValueError("not JSON")
    raise ValueError("too many values")


def _end_of(text: str, at: int) -> int | None:
    """Where an object or a list ends; None where it is nested too deeply to say so at once."""
    try:
        return _skip.raw_decode(text, at)[1]
    except RecursionError:
        return None


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None  # noqa: S101 - it matches nothing, too
    return found.end()
