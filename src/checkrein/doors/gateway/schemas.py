"""Arguments against a tool's input schema: fetches nothing, takes linear time in a text, has a bound on work.

The catalogue compiles, calls ask for `faults`. A schema that cannot be used makes its tool unusable.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from checkrein.call import DEEPEST
from checkrein.doors.gateway.definitions import legible
from checkrein.errors import InputError

LARGEST_SCHEMA = 256 << 10
# Steps a check may take at most, as far as the schema and the size of the arguments tell.
MOST_STEPS = 30_000_000
MOST_PLACES = 20_000
MOST_PATTERNS = 200
MOST_FAULTS = 5
_LONGEST_FAULT = 300
_REGEX_BYTES = 1 << 20
# Beyond this only the first fault is looked for.
_FEW_STEPS = 20_000
_HEAVY = 20
# Keys whose schemas apply to the value itself, and those whose schemas apply to what is inside it.
_BESIDE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_INSIDE = (
    *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "patternProperties"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
)
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TOO_INVOLVED = "Its inputSchema is too involved: following its references has no near end."
_TOO_MUCH = "The arguments are too large or too deeply nested to be checked against this tool's schema."


class _Compiled(Protocol):
    def is_valid(self, instance: Any) -> bool: ...

    def validate(self, instance: Any) -> None: ...

    def iter_errors(self, instance: Any) -> Any: ...


class Validator:
    """A compiled input schema. Make it with `compile_schema`."""

    __slots__ = ("_branches", "_compiled", "_places")

    def __init__(self, compiled: _Compiled | None, places: int = 1, branches: int = 1) -> None:
        self._compiled, self._places, self._branches = compiled, places, branches

    def faults(self, arguments: Any) -> list[str]:
        """What is wrong with the arguments, in sentences without their values; empty when nothing is."""
        if not isinstance(arguments, dict):
            return ["The arguments must be an object."]
        # INVARIANT: no schema and no arguments, however they were made for it, keep the gateway busy.
        steps = self._steps(arguments)
        if steps > MOST_STEPS:
            return [_TOO_MUCH]
        if self._compiled is None:
            return []
        try:
            if self._compiled.is_valid(arguments):
                return []
            if steps > _FEW_STEPS:
                return [_first_fault(self._compiled, arguments)]
            found = [_sentence(each) for each in islice(self._compiled.iter_errors(arguments), MOST_FAULTS)]
        except Exception:  # noqa: BLE001 - what cannot be checked is not let through
            return ["The arguments could not be checked against this tool's schema."]
        return found or ["The arguments do not fit this tool's schema."]

    def _steps(self, arguments: Any) -> int:
        """How much work it is: places in the schema, values in the arguments, ways to reach each."""
        if (flat := _plain_size(arguments)) is not None:
            return flat * self._places * self._branches ** (2 if arguments else 1)
        size, depth, steps, level = 0, 0, 0, [arguments]
        while level:
            depth += 1
            size += sum(1 + len(each) // 64 if isinstance(each, str) else 1 for each in level)
            steps = size * self._places * self._branches**depth
            if depth > DEEPEST or steps > MOST_STEPS:
                return MOST_STEPS + 1
            level = [inner for each in level for inner in _inside(each)]
        return steps


ANYTHING = Validator(None)


def compile_schema(schema: Any) -> Validator:
    """The schema ready for checking; raises InputError saying why it cannot be used."""
    if schema is None:
        return ANYTHING
    if not isinstance(schema, dict):
        raise InputError("Its inputSchema is no object.")
    if len(msgspec.json.encode(schema)) > LARGEST_SCHEMA:
        raise InputError(f"Its inputSchema is larger than {LARGEST_SCHEMA:,} bytes.")
    places, branches = _Reach(schema).measure()
    return Validator(_compile(schema), places, branches)


def _compile(schema: dict[str, Any]) -> _Compiled:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            # INVARIANT: no reference is ever fetched, from the network or from a file.
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES),
            mask="the value",
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the library's panics are no Exception
        why = legible(getattr(error, "message", "") or type(error).__name__, 200)
        raise InputError(f"Its inputSchema cannot be used: {why}") from None


def _first_fault(compiled: _Compiled, arguments: Any) -> str:
    """INVARIANT: faults are collected only where there cannot be many: each of them takes memory."""
    import jsonschema_rs

    try:
        compiled.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        return _sentence(error)
    return "The arguments do not fit this tool's schema."


def _sentence(error: Any) -> str:
    place = ".".join(str(each) for each in error.instance_path)
    text = f"`{place}`: {error.message}" if place else str(error.message)
    return legible(text, _LONGEST_FAULT)


def _plain_size(arguments: dict[Any, Any]) -> int | None:
    """The size of arguments that hold nothing inside one another, as most do; nothing for others."""
    size = 1
    for key, value in arguments.items():
        size += 2 + len(key) // 64
        if isinstance(value, str):
            size += len(value) // 64
        elif isinstance(value, dict | list):
            return None
    return size


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


class _Ways:
    """References into a circle that can apply to one value: at it, at named parts of it, at any part."""

    __slots__ = ("anywhere", "here", "named")

    def __init__(self) -> None:
        self.here, self.anywhere = 0, 0
        self.named: dict[str, int] = {}

    @property
    def most(self) -> int:
        """The most that meet on one way down into a value: no two names are the same part of it."""
        return self.here + self.anywhere + max(self.named.values(), default=0)

    def beside(self, other: _Ways) -> None:
        self.here += other.here
        self.anywhere += other.anywhere
        for name, count in other.named.items():
            self.named[name] = self.named.get(name, 0) + count


class _Reach:
    """How much of a schema can apply to one value: references are followed, circles counted."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema, self._places, self._patterns, self._compared = schema, 0, 0, 0
        self._anchors = dict(_anchors(schema))

    def measure(self) -> tuple[int, int]:
        """Places visited when every reference is followed once, and how often a circle multiplies them."""
        try:
            ways = self._walk(self._schema, (id(self._schema),))
        except RecursionError:
            raise InputError(_TOO_INVOLVED) from None
        return self._places + self._compared, max(1, ways.most)

    def _walk(self, schema: Any, above: tuple[int, ...]) -> _Ways:
        ways = _Ways()
        self._count(schema)
        if not isinstance(schema, dict):
            return ways
        for _, each in _parts(schema, _BESIDE):
            ways.beside(self._walk(each, above))
        for _, each in _parts(schema, _INSIDE):
            ways.anywhere += self._walk(each, above).most
        for key, each in _parts(schema, ("properties",)):
            if most := self._walk(each, above).most:
                ways.named[key] = ways.named.get(key, 0) + most
        for key in _REFERENCES:
            if isinstance(schema.get(key), str):
                ways.beside(self._follow(schema[key], above))
        return ways

    def _count(self, schema: Any) -> None:
        self._places += 1
        if isinstance(schema, dict):
            named = schema.get("patternProperties")
            self._patterns += ("pattern" in schema) + (len(named) if isinstance(named, dict) else 0)
            self._compared += _compared(schema)
        if self._places > MOST_PLACES or self._patterns > MOST_PATTERNS:
            raise InputError(_TOO_INVOLVED)

    def _follow(self, reference: str, above: tuple[int, ...]) -> _Ways:
        target = self._target(reference)
        if id(target) not in above:
            return self._walk(target, (*above, id(target)))
        ways = _Ways()
        ways.here = 1
        return ways

    def _target(self, reference: str) -> Any:
        """What a reference leads to; only places in this same schema count."""
        if reference in self._anchors:
            return self._anchors[reference]
        here: Any = self._schema
        for step in unquote(reference).split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if step == "#" and here is self._schema:
                continue
            if isinstance(here, dict) and reference.startswith("#/") and key in here:
                here = here[key]
            elif isinstance(here, list) and key.isascii() and key.isdigit() and int(key) < len(here):
                here = here[int(key)]
            else:
                raise InputError(f"Its inputSchema refers to another place: {legible(reference, 100)}")
        return here


def _compared(schema: dict[str, Any]) -> int:
    """How many things one value is compared with, one by one: names that must be there, values it may be."""
    lists = [schema.get(key) for key in ("required", "enum")]
    dependent = schema.get("dependentRequired")
    lists += dependent.values() if isinstance(dependent, dict) else ()
    # Plain values are looked up; objects and lists are compared part by part.
    weights = (_HEAVY if isinstance(each, dict | list) else 1 for each in _flat(lists))
    return sum(weights)


def _flat(lists: list[Any]) -> Iterator[Any]:
    return (item for each in lists if isinstance(each, list) for item in each)


def _anchors(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every place with a name of its own. Schemas within that count as documents of their own are refused."""
    waiting: list[Any] = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        if not isinstance(each, dict):
            continue
        waiting += each.values()
        if each is not schema and isinstance(each.get("$id"), str):
            raise InputError("Its inputSchema holds another document (`$id`).")
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(each.get(key), str):
                yield f"#{each[key]}", each


def _parts(schema: dict[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The schemas under these keys, each with its name where it has one."""
    for key in keys:
        found = schema.get(key)
        if isinstance(found, list):
            yield from (("", each) for each in found)
        elif isinstance(found, dict) and key in _BY_NAME:
            yield from found.items()
        elif isinstance(found, dict):
            yield "", found
