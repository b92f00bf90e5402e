"""A script's text: which form it has, as TypeScript or not, and where in it a call was made.

Called by the sandbox when a script starts, and for every call it makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

# Lines beyond these are ours: the shim is evaluated under the same file name as the script.
_MOST_LINES = 1 << 17
_FRAME = re.compile(r"\(?eval_script:(\d+):(\d+)\)?$", re.MULTILINE)
_NAME = re.compile(r"\bcodemode\b")
# `codemode.tool`, `codemode["tool"]`, or, known to the running script only, `codemode[name]`; cut anywhere.
_MEMBER = re.compile(
    r"""codemode\s*(?:\?\.|\.)?\s*(?:([\w$]+)|\[\s*(?:(["'`])([^"'`]*)\2\s*\]?|[^\]]*\]?))?"""
)
_OPENED = re.compile(r"\s*(?:\?\.?)?\s*(?:\(|$)")
_LONGEST_CALL = 8 << 10
_OPENING, _CLOSING = "(async () => {", "\n})"
_TYPESCRIPT = 1 | 1 << 8

Form = Literal["statements", "body"]


class StopError(Exception):
    """Raise when the script is over, with the kind of failure and what to say."""

    def __init__(self, kind: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.kind, self.message, self.line = kind, message, line


class Script(msgspec.Struct, frozen=True):
    """What a person wrote, and what the engine was given instead, where that differs."""

    source: str
    given: str
    form: Form = "statements"

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @classmethod
    def of_json(cls, found: Any) -> Script:
        return msgspec.convert(found, cls)

    def place(self, stack: str, tool: str = "") -> tuple[int, int]:
        """Line (from 1) and column (from 0) of the script's innermost frame; zeros when unknown.

        With a tool, of its `codemode.tool`: the engine only says where it was when it made the call.
        """
        for found in _FRAME.finditer(stack):
            line, column = int(found[1]), int(found[2])
            if line <= _MOST_LINES:
                return self._original(line, column - 1, tool)
        return 0, 0

    def _original(self, line: int, column: int, tool: str) -> tuple[int, int]:
        offset = _offset(self.given, line, column)
        called = _call_before(self.given, offset, tool) if tool else None
        if called is not None and not self._is_as_written:
            return self._same_name(called)
        if not self._is_as_written:
            return 0, 0
        shift = len(_OPENING) if self.form == "body" else 0
        return _place(self.source, max(0, (offset if called is None else called) - shift))

    @property
    def _is_as_written(self) -> bool:
        return self.given in (self.source, wrapped(self.source))

    def _same_name(self, offset: int) -> tuple[int, int]:
        """Types are gone and lines moved, but the n-th `codemode` is still the n-th."""
        theirs = [found.start() for found in _NAME.finditer(self.given)]
        ours = [found.start() for found in _NAME.finditer(self.source)]
        if len(theirs) != len(ours) or offset not in theirs:
            return 0, 0
        return _place(self.source, ours[theirs.index(offset)])


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return min(len(text), start + column)


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1)


def _call_before(text: str, offset: int, tool: str) -> int | None:
    """Where the `codemode` begins whose call is open, or about to be, at the offset."""
    start = max(0, offset - _LONGEST_CALL)
    before = text[start : offset + 1]
    for found in reversed(list(_NAME.finditer(before))):
        after = before[found.start() :]
        member = _MEMBER.match(after)
        named = member and (member[1] or member[3])
        if member is None or not (
            named in (tool, None) or (member.end() == len(after) and tool.startswith(named))
        ):
            continue
        rest = after[member.end() :]
        if _OPENED.match(rest) and (rest.count("(") > rest.count(")") or "(" not in rest):
            return start + found.start()
    return None


def shim_prefix() -> str:
    return "\n" * _MOST_LINES


def wrapped(source: str) -> str:
    return _OPENING + source + _CLOSING


def read(context: Any, source: str, begin: Callable[[Script], None]) -> tuple[Script, Any]:
    """The script, and the engine's handle on it: a promise of statements, or a function with its body.

    `begin` hears what is about to be evaluated. Raises StopError when neither language reads it.
    """
    try:
        return _evaluated(context, begin, source, source, wrapped(source))
    except _Unreadable as error:
        first = error
    try:
        return _evaluated(context, begin, source, *_without_types(context, source))
    except _Unreadable:
        raise StopError("syntax", first.message, first.line) from None


class _Unreadable(Exception):  # noqa: N818
    def __init__(self, message: str, stack: str | None) -> None:
        super().__init__(message)
        found = re.search(r"eval_script:(\d+)", stack or "")
        self.message, self.line = f"SyntaxError: {message}", int(found[1]) if found else 0


def _evaluated(
    context: Any, begin: Callable[[Script], None], source: str, plain: str | None, body: str
) -> tuple[Script, Any]:
    if plain is not None:
        script = Script(source, plain)
        begin(script)
        try:
            return script, _handle(context, plain, promise=True)
        except _Unreadable as error:
            if "return" not in error.message:
                raise
    script = Script(source, body, "body")
    begin(script)
    return script, _handle(context, body, promise=False)


def _handle(context: Any, text: str, *, promise: bool) -> Any:
    """Only what cannot be read is a SyntaxError here: what throws has begun, and breaks its promise."""
    from quickjs_rs._engine import JSError

    try:
        return context.eval_handle(text, promise=promise)
    except JSError as error:
        if error.args[0] != "SyntaxError":
            raise
        raise _Unreadable(error.args[1], error.args[2]) from None


def _without_types(context: Any, source: str) -> tuple[str | None, str]:
    body = _stripped(context, wrapped(source))
    try:
        return _stripped(context, source), body
    except _Unreadable:
        return None, body


def _stripped(context: Any, text: str) -> str:
    from quickjs_rs._engine import JSError

    try:
        made: str = context._inst.transform_eval_source("script.ts", text, transform_flags=_TYPESCRIPT)
    except JSError as error:
        raise _Unreadable(error.args[1], None) from None
    return made
