"""What a JSON Schema says about a value, as a small tree that stubs are written from.

Schemas are hostile: whatever is too deep, too wide, circular or strange becomes "anything". Never raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

_DEEPEST, _MOST_SHAPES = 12, 400
_MOST_FIELDS, _MOST_CHOICES, _MOST_LITERALS = 100, 16, 40
_LONGEST_NAME, _LONGEST_LITERAL, _LARGEST_NUMBER = 96, 80, 2**53
_LONGEST_REFERENCE = 200


class Plain(msgspec.Struct, frozen=True):
    """A string, number, integer, boolean, null, or anything."""

    kind: str


class Literals(msgspec.Struct, frozen=True):
    """One of these strings, whole numbers, booleans or null."""

    values: tuple[str | int | bool | None, ...]


class ListOf(msgspec.Struct, frozen=True):
    """An array."""

    item: Shape


class MapOf(msgspec.Struct, frozen=True):
    """An object whose keys are not known."""

    value: Shape


class Field(msgspec.Struct, frozen=True):
    """A known key of an object."""

    name: str
    shape: Shape
    required: bool
    description: str = ""


class Record(msgspec.Struct, frozen=True):
    """An object with known keys; `rest` says what others hold, None that there are none."""

    fields: tuple[Field, ...]
    rest: Shape | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of several shapes."""

    shapes: tuple[Shape, ...]


Shape = Plain | Literals | ListOf | MapOf | Record | Choice

ANYTHING, NULL = Plain("any"), Plain("null")
ANY_OBJECT, ANY_LIST = MapOf(ANYTHING), ListOf(ANYTHING)
_KINDS: dict[str, Shape] = {
    **{kind: Plain(kind) for kind in ("string", "number", "integer", "boolean", "null")},
    "object": ANY_OBJECT,
    "array": ANY_LIST,
}


def shape_of(schema: Any) -> Shape:
    """The shape of values that a schema allows."""
    return _Reader(schema).read(schema, 0)


def arguments_of(schema: Any) -> Record:
    """The named arguments that an input schema allows."""
    shape = shape_of(schema)
    if isinstance(shape, Record):
        return shape
    if isinstance(shape, MapOf):
        return Record((), shape.value)
    records = [each for each in shape.shapes if isinstance(each, Record)] if isinstance(shape, Choice) else []
    return _either(records) if records else Record((), ANYTHING)


class _Reader:
    """Reads one schema, within bounds that hold for the whole of it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _MOST_SHAPES
        self._open: list[str] = []

    def read(self, schema: Any, depth: int) -> Shape:
        self._left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self._left < 0:
            return ANYTHING
        shape = self._own(schema, depth)
        if isinstance(schema.get("$ref"), str):
            shape = _both(shape, self._reference(schema["$ref"], depth))
        for part in _some(schema.get("allOf"), _MOST_CHOICES):
            shape = _both(shape, self.read(part, depth + 1))
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                shape = _both(shape, self._choice(schema[key], depth))
        return _one_of((shape, NULL)) if schema.get("nullable") is True else shape

    def _own(self, schema: dict[Any, Any], depth: int) -> Shape:
        """What the schema says itself, its parts and references aside."""
        if "const" in schema:
            return _literals([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literals(schema["enum"])
        kinds = schema.get("type")
        if kinds is None:
            kinds = _implied(schema)
        names = [kinds] if isinstance(kinds, str) else _some(kinds, _MOST_CHOICES)
        shapes = [self._of_kind(name, schema, depth) for name in names if isinstance(name, str)]
        return _one_of(shapes) if shapes else ANYTHING

    def _of_kind(self, kind: str, schema: dict[Any, Any], depth: int) -> Shape:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        return _KINDS.get(kind, ANYTHING)

    def _array(self, schema: dict[Any, Any], depth: int) -> Shape:
        items = schema.get("items")
        listed = [*_some(schema.get("prefixItems"), _MOST_CHOICES), *_some(items, _MOST_CHOICES)]
        if isinstance(items, dict):
            listed.append(items)
        return ListOf(_one_of([self.read(each, depth + 1) for each in listed])) if listed else ANY_LIST

    def _object(self, schema: dict[Any, Any], depth: int) -> Shape:
        properties = schema.get("properties")
        rest = self._rest(schema, depth)
        if not isinstance(properties, dict):
            return MapOf(rest or ANYTHING)
        required = {name for name in _some(schema.get("required"), 1000) if isinstance(name, str)}
        fields = []
        for name, part in islice(properties.items(), _MOST_FIELDS):
            if _sayable(name) and self._left > 0:
                told = part.get("description") if isinstance(part, dict) else ""
                shape = self.read(part, depth + 1)
                fields.append(Field(name, shape, name in required, told if isinstance(told, str) else ""))
        if len(fields) < len(properties):
            rest = ANYTHING
        return Record(tuple(fields), rest) if fields or rest is None else MapOf(rest)

    def _rest(self, schema: dict[Any, Any], depth: int) -> Shape | None:
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns:
            return _one_of([self.read(each, depth + 1) for each in islice(patterns.values(), _MOST_CHOICES)])
        more = schema.get("additionalProperties")
        if more is True:
            return ANYTHING
        return self.read(more, depth + 1) if isinstance(more, dict) else None

    def _choice(self, parts: list[Any], depth: int) -> Shape:
        if len(parts) > _MOST_CHOICES:
            return ANYTHING
        return _one_of([self.read(part, depth + 1) for part in parts])

    def _reference(self, reference: str, depth: int) -> Shape:
        # INVARIANT: nothing outside the schema is ever looked up, and no reference is followed into itself.
        if reference in self._open or len(reference) > _LONGEST_REFERENCE or not reference.startswith("#/"):
            return ANYTHING
        self._open.append(reference)
        try:
            return self.read(_pointed(self._root, reference), depth + 1)
        finally:
            self._open.pop()


def _pointed(root: Any, reference: str) -> Any:
    from urllib.parse import unquote

    found = root
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(key)] if key.isascii() and key.isdigit() and int(key) < len(found) else None
        else:
            found = found.get(key) if isinstance(found, dict) else None
    return found


def _implied(schema: dict[Any, Any]) -> str | None:
    if "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else None


def _some(value: Any, most: int) -> list[Any]:
    return list(islice(value, most)) if isinstance(value, list) else []


def _sayable(name: Any) -> bool:
    """Whether a key can be written down, and read."""
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and _whole(name)


def _whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _literals(values: list[Any]) -> Shape:
    if not values:
        return ANYTHING
    if len(values) <= _MOST_LITERALS and all(map(_literal, values)):
        return Literals(tuple({(type(value), value): value for value in values}.values()))
    return _one_of(list({_kind(value): _KINDS[_kind(value)] for value in islice(values, 1000)}.values()))


def _literal(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_LITERAL and _whole(value)
    return (
        value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < _LARGEST_NUMBER)
    )


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value.is_integer()):
        return "integer"
    kinds = ((str, "string"), (float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _one_of(shapes: Iterable[Shape]) -> Shape:
    """Any of these, without repetition; all literals in one."""
    every = list(_flat(shapes))
    values = [value for each in every if isinstance(each, Literals) for value in each.values]
    others = [each for each in every if not isinstance(each, Literals)]
    flat = list(dict.fromkeys([*others, *_flat([_literals(values)])] if values else others))
    if not flat or ANYTHING in flat:
        return ANYTHING
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


def _flat(shapes: Iterable[Shape]) -> Iterator[Shape]:
    for shape in shapes:
        if isinstance(shape, Choice):
            yield from shape.shapes
        else:
            yield shape


def _both(first: Shape, second: Shape) -> Shape:
    """What is both; where that is hard to say, what the first is."""
    if first == ANYTHING or (first == ANY_OBJECT and isinstance(second, Record)):
        return second
    if isinstance(first, Record) and isinstance(second, Record):
        return _merged(first, second)
    if isinstance(first, Record) and isinstance(second, Choice):
        # Merged, not multiplied out: copies of copies would grow without bound.
        records = [each for each in second.shapes if isinstance(each, Record)]
        return _merged(first, _either(records)) if len(records) == len(second.shapes) else first
    if isinstance(first, Plain) and isinstance(second, Literals):
        return second
    return first


def _merged(first: Record, second: Record) -> Record:
    fields = {field.name: field for field in first.fields}
    for field in second.fields:
        known = fields.get(field.name)
        fields[field.name] = _merged_field(known, field) if known else field
    return Record(tuple(islice(fields.values(), _MOST_FIELDS)), first.rest or second.rest)


def _merged_field(first: Field, second: Field) -> Field:
    shape, required = _both(first.shape, second.shape), first.required or second.required
    return Field(first.name, shape, required, first.description or second.description)


def _either(records: list[Record]) -> Record:
    """Every field of any; required where all of them require it."""
    fields: dict[str, Field] = {}
    for field in (field for record in records for field in record.fields):
        known = fields.get(field.name)
        shape = _one_of([known.shape, field.shape]) if known else field.shape
        required = all(any(f.name == field.name and f.required for f in r.fields) for r in records)
        fields[field.name] = Field(field.name, shape, required, field.description)
    rests = [record.rest for record in records if record.rest is not None]
    return Record(tuple(islice(fields.values(), _MOST_FIELDS)), _one_of(rests) if rests else None)
