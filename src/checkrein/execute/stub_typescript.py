"""Writes a tool as a TypeScript declaration.

Called by stubs. The text is for a model to read; it declares, and never runs.
"""

from __future__ import annotations

import re

from checkrein.execute.shapes import (
    Choice,
    Field,
    ListOf,
    Literals,
    MapOf,
    Plain,
    Record,
    Shape,
    arguments_of,
    shape_of,
)
from checkrein.execute.stub_text import LONGEST_SIGNATURE, quoted

COMMENT = "//"
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_WIDE = "\\u{{{:x}}}"
_PLAIN = {"integer": "number", "any": "unknown"}


def signature(name: str, takes: object, gives: object) -> str:
    """`name(args: {...}): Promise<...>;`"""
    arguments = arguments_of(takes)
    optional = "" if any(field.required for field in arguments.fields) else "?"
    given = "" if arguments == Record(()) else f"args{optional}: {_record(arguments)}"
    result = "any" if gives is None else written(shape_of(gives))
    line = f"{name}({given}): Promise<{result}>;"
    return (
        line if len(line) <= LONGEST_SIGNATURE else f"{name}(args?: Record<string, unknown>): Promise<any>;"
    )


def document(signatures: str) -> str:
    """The declarations of a whole set of tools."""
    return f"declare const codemode: {{\n{signatures}\n}};\n"


def written(shape: Shape) -> str:
    """A shape as a type."""
    match shape:
        case Plain(kind):
            return _PLAIN.get(kind, kind)
        case Literals(values):
            return " | ".join(map(_literal, values))
        case ListOf(item):
            inner = written(item)
            return f"({inner})[]" if isinstance(item, Choice | Literals) else f"{inner}[]"
        case MapOf(value):
            return f"Record<string, {written(value)}>"
        case Record():
            return _record(shape)
        case Choice(shapes):
            return " | ".join(map(written, shapes))


def _record(record: Record) -> str:
    if not record.fields:
        return "{}" if record.rest is None else written(MapOf(record.rest))
    parts = [_field(field) for field in record.fields]
    if record.rest is not None:
        # An index signature must hold for the known keys too.
        parts.append("[key: string]: unknown")
    return "{ " + "; ".join(parts) + " }"


def _field(field: Field) -> str:
    name = field.name if _IDENTIFIER.match(field.name) else quoted(field.name, _WIDE)
    return f"{name}{'' if field.required else '?'}: {written(field.shape)}"


def _literal(value: str | int | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value, _WIDE) if isinstance(value, str) else str(value)
