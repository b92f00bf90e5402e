"""Why a Python script stopped, in a failure's kind, words and line.

Called by the Python engine with what the interpreter raised. Decides nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

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


def fault_of(error: BaseException, seconds: float) -> Fault:
    """What an exception of the interpreter means."""
    import pydantic_monty as monty

    if isinstance(error, monty.MontySyntaxError):
        return Fault("syntax", _cut(error.display("msg")), _line(error))
    if isinstance(error, monty.MontyCrashedError):
        return (
            out_of_time(seconds)
            if error.timed_out
            else Fault("crash", "The sandbox's worker ended unexpectedly.")
        )
    if isinstance(error, monty.MontyRuntimeError):
        return _runtime(error, seconds)
    if isinstance(error, monty.MontyConversionError):
        return Fault("error", _cut(str(error)))
    return Fault("crash", f"The sandbox cannot go on: {_cut(str(error)) or type(error).__name__}")


def out_of_time(seconds: float) -> Fault:
    return Fault("time", f"The script computed for longer than {seconds:g} seconds.")


def _runtime(error: Any, seconds: float) -> Fault:
    inner, text, line = error.exception(), error.display("type-msg"), _line(error)
    words = str(inner)
    if isinstance(inner, TimeoutError) and "time limit exceeded" in words:
        return out_of_time(seconds)
    if isinstance(inner, MemoryError) and ("memory limit" in words):
        return Fault("memory", "The script needs more memory than it may use.", line)
    if isinstance(inner, NotImplementedError) and _UNSUPPORTED.match(words):
        what = _UNSUPPORTED.sub("", words)
        return Fault("unsupported", f"Scripts cannot use {_cut(what)}.", line)
    if isinstance(inner, ModuleNotFoundError):
        return Fault("unsupported", f"Scripts cannot import that: {_cut(words)}", line)
    if isinstance(inner, RecursionError):
        return Fault("error", _cut(text)[:300], line)
    return Fault("error", _cut(text), line)


def _line(error: Any) -> int:
    lines = [frame.line for frame in error.traceback() if _of_script(frame.filename)]
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
