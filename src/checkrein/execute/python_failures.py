"""Why a Python script stopped, in a failure's kind, words and line.

Called by the Python engine with what a script raised. Decides nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from checkrein.execute.python_words import Raised
from checkrein.execute.sandbox import FailureKind

PRELUDE_FILE = "<python-input-0>"
_UNSUPPORTED = re.compile(r"^The monty syntax parser does not yet support ")
_RIGHT_HERE = ("`return` statement outside of a function", "is not awaited")
_MOST_DIAGNOSTICS, _LONGEST = 5, 2000


class Fault(msgspec.Struct, frozen=True):
    """A failure without the output that went before it."""

    kind: FailureKind
    message: str
    line: int = 0


def fault_of(raised: Raised, seconds: float) -> Fault:
    """What an exception nobody caught means."""
    kind, said, line = raised.kind, raised.message, _line(raised)
    if kind == "SyntaxError":
        return Fault("syntax", _cut(said), line)
    if kind == "TimeoutError" and "time limit exceeded" in said:
        return out_of_time(seconds)
    if kind == "MemoryError" and "memory limit" in said:
        return Fault("memory", "The script needs more memory than it may use.", line)
    if kind == "NotImplementedError" and _UNSUPPORTED.match(said):
        return Fault("unsupported", f"Scripts cannot use {_cut(_UNSUPPORTED.sub('', said))}.", line)
    if kind == "ModuleNotFoundError":
        return Fault("unsupported", f"Scripts cannot import that: {_cut(said)}", line)
    text = _cut(f"{kind}: {said}" if said else kind)
    return Fault("error", text[:300] if kind == "RecursionError" else text, line)


def out_of_time(seconds: float) -> Fault:
    return Fault("time", f"The script computed for longer than {seconds:g} seconds.")


def _line(raised: Raised) -> int:
    lines = [frame.line for frame in raised.frames if _of_script(frame.filename)]
    return lines[-1] if lines else 0


def _of_script(filename: str) -> bool:
    return filename.startswith("<python-input-") and filename != PRELUDE_FILE


def of_types(rendered: str, source: str) -> Fault | None:
    """What the type check found; None when all of it is something a script may do here."""
    try:
        found = [item for item in json.loads(rendered) if _counts(item, source)]
    except (ValueError, TypeError, AttributeError, KeyError):
        return Fault("types", _cut(rendered))
    if not found:
        return None
    rows = [f"line {item['location']['row']}: {item['message']}" for item in found[:_MOST_DIAGNOSTICS]]
    if len(found) > _MOST_DIAGNOSTICS:
        rows.append(f"and {len(found) - _MOST_DIAGNOSTICS} more")
    return Fault("types", _cut("\n".join(rows)), int(found[0]["location"]["row"]))


def _counts(item: dict[str, Any], source: str) -> bool:
    """One dict for the keywords, `return` at the top and a forgotten `await` are right here."""
    if item["severity"] == "warning" or any(words in item["message"] for words in _RIGHT_HERE):
        return False
    if item["code"] in ("too-many-positional-arguments", "missing-argument"):
        lines = source.splitlines()
        row, column = item["location"]["row"], item["location"]["column"]
        rest = lines[row - 1][column - 1 :] if row <= len(lines) else ""
        return not re.match(r"(?:[\w.]+\(\s*)?(?:\{|\*\*|$)", rest)
    return True


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
