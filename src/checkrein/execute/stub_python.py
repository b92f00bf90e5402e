"""Writes a tool as a Python function: as a model reads it, and as the type check before a run wants it.

Called by stubs. Declarations only; nothing here is ever run.
"""

from __future__ import annotations

import keyword
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

COMMENT = "#"
HEAD = "from typing import Any, Literal, NotRequired, TypedDict\n"
CHECK_HEAD = HEAD + "from collections.abc import Mapping\n"
_WIDE = "\\U{:08x}"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
}
_ANY_DICT = "dict[str, Any]"


class Records:
    """The record types of a set of stubs; equal ones are declared once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def name(self, hint: str, body: str) -> tuple[str, str]:
        """A record's name, and its declaration when it is new."""
        if body in self._names:
            return self._names[body], ""
        # One underscore before, never two in a row: no tool and no builtin is called so.
        words = re.findall(r"[0-9A-Za-z]+", hint)[:4]
        stem = "_" + ("".join(word[:1].upper() + word[1:24] for word in words) or "Record")
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        self._names[body] = name
        return name, f'{name} = TypedDict("{name}", {body})\n'

    def __len__(self) -> int:
        return len(self._names)

    def forget(self, but: int) -> None:
        """All but so many, the oldest: what was named since was not declared after all."""
        while len(self._names) > but:
            self._taken.discard(self._names.popitem()[1])


class _Writer:
    """Writes one tool's types and collects the records they need."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.declared = ""

    def written(self, shape: Shape, hint: str) -> str:
        match shape:
            case Plain(kind):
                return _PLAIN[kind]
            case Literals(values):
                return f"Literal[{', '.join(map(_literal, values))}]"
            case ListOf(item):
                return f"list[{self.written(item, hint)}]"
            case MapOf(value):
                return f"dict[str, {self.written(value, hint)}]"
            case Record():
                return self._record(shape, hint)
            case Choice(shapes):
                return " | ".join(dict.fromkeys(self.written(each, hint) for each in shapes))

    def _record(self, record: Record, hint: str) -> str:
        if record.rest is not None or not record.fields:
            return _ANY_DICT
        body = "{" + ", ".join(self._field(field) for field in record.fields) + "}"
        name, declaration = self._records.name(hint, body)
        self.declared += declaration
        return name

    def _field(self, field: Field) -> str:
        kind = self.written(field.shape, field.name)
        return f"{quoted(field.name, _WIDE)}: {kind if field.required else f'NotRequired[{kind}]'}"


def function(name: str, takes: object, gives: object, records: Records) -> tuple[str, str]:
    """Declarations of records, and `async def name(*, ...) -> ...: ...`."""
    writer, arguments = _Writer(records), arguments_of(takes)
    known = len(records)
    if _sayable(arguments):
        given = _keywords([(field, writer.written(field.shape, field.name)) for field in arguments.fields])
    else:
        given = [f"arguments: {writer.written(arguments, f'{_own(name)} arguments')}", "/"]
    result = "Any" if gives is None else writer.written(shape_of(gives), f"{_own(name)} result")
    return _short(name, given + _rest(arguments), result, writer.declared, records, known)


def checked(name: str, takes: object, gives: object, records: Records) -> tuple[str, str]:
    """The same, refusing only what is surely wrong."""
    writer, arguments = _Writer(records), arguments_of(takes)
    known = len(records)
    if _sayable(arguments):
        given = _keywords([(field, _accepted(field.shape)) for field in arguments.fields]) + _rest(arguments)
    else:
        given = ["arguments: Mapping[str, Any] = ...", "/", "**named: Any"]
    shape = shape_of(gives)
    result = writer.written(_certain(shape), f"{_own(name)} result") if isinstance(shape, Record) else "Any"
    return _short(name, given, result, writer.declared, records, known)


def unknown(name: str) -> str:
    """A tool of which only the name is certain."""
    return f"async def {name}(**named: Any) -> Any: ..."


def _short(
    name: str, given: list[str], result: str, declared: str, records: Records, known: int
) -> tuple[str, str]:
    line = f"async def {name}({', '.join(given)}) -> {result}: ..."
    if len(declared) + len(line) <= LONGEST_SIGNATURE:
        return declared, line
    records.forget(but=known)
    return "", unknown(name)


def _own(name: str) -> str:
    return name.partition("__")[2] or name


def _keywords(parts: list[tuple[Field, str]]) -> list[str]:
    written = [f"{field.name}: {kind}{'' if field.required else ' = ...'}" for field, kind in parts]
    return ["*", *written] if written else []


def _rest(arguments: Record) -> list[str]:
    if arguments.rest is None:
        return []
    taken, more = {field.name for field in arguments.fields}, "more"
    while more in taken:
        more += "_"
    return [f"**{more}: Any"]


def _accepted(shape: Shape) -> str:
    """What an argument may be; variables holding lists and dicts have wider types than literals in place."""
    match shape:
        case Plain(kind):
            return _PLAIN[kind]
        case Literals(values):
            return f"Literal[{', '.join(map(_literal, values))}]"
        case ListOf(Plain("string" | "integer" | "boolean" as kind)):
            return f"list[{_PLAIN[kind]}] | tuple[{_PLAIN[kind]}, ...]"
        case ListOf():
            return "list[Any] | tuple[Any, ...]"
        case MapOf() | Record():
            return "Mapping[str, Any]"
        case Choice(shapes):
            return " | ".join(dict.fromkeys(map(_accepted, shapes)))


def _certain(shape: Shape) -> Shape:
    """A result without what a script would have to tell apart first."""
    match shape:
        case Record(fields, rest):
            return Record(tuple(Field(f.name, _certain(f.shape), f.required) for f in fields), rest)
        case ListOf(item):
            return ListOf(_certain(item))
        case MapOf(value):
            return MapOf(_certain(value))
        case Choice():
            return Plain("any")
        case _:
            return shape


def _sayable(arguments: Record) -> bool:
    """Whether every name can be a parameter's."""
    return all(_IDENTIFIER.match(field.name) and _free(field.name) for field in arguments.fields)


def _free(name: str) -> bool:
    return not keyword.iskeyword(name) and name != "__debug__"


def _literal(value: str | int | bool | None) -> str:
    return quoted(value, _WIDE) if isinstance(value, str) else str(value)
