"""What may cross between a JavaScript script and us: JSON text, not too large, not too deep, nothing beside.

Called inside the worker for every call, result and YAML text.
"""

from __future__ import annotations

import json
from typing import Any

from checkrein.execute.sandbox import DEEPEST_VALUE, LARGEST_VALUE


class RefusedError(Exception):
    """Raise when a value may not cross; the script sees the text."""


def checked(text: str) -> Any:
    """JSON that may cross. INVARIANT: nothing larger, deeper or less than JSON does, in either direction."""
    if len(text) > LARGEST_VALUE or len(text.encode()) > LARGEST_VALUE:
        raise RefusedError(f"is larger than {LARGEST_VALUE} bytes as JSON")
    try:
        value = json.loads(text, parse_constant=_no_number, parse_int=_whole, object_pairs_hook=_object)
        _walk(value, 0)
    except RecursionError:
        raise RefusedError(f"is nested deeper than {DEEPEST_VALUE} levels") from None
    except ValueError:
        raise RefusedError("is no JSON") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RefusedError("has a key twice")
    return made


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 64:
        raise RefusedError("holds a whole number beyond 64 bits; pass it as text")
    return int(digits)


def _no_number(word: str) -> Any:
    raise RefusedError(f"holds {word}, which JSON has no word for")


def _walk(value: Any, depth: int) -> None:
    if depth > DEEPEST_VALUE:
        raise RefusedError(f"is nested deeper than {DEEPEST_VALUE} levels")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RefusedError("holds text that is not valid Unicode") from None
    elif isinstance(value, list):
        for item in value:
            _walk(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _walk(key, depth)
            _walk(item, depth + 1)
