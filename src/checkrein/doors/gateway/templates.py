"""Resource templates (RFC 6570): which parameters one has, and the URI it becomes with their values.

Guests ask. Values are texts, and written so that they stay in the place the template has for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from checkrein.errors import InputError

LONGEST, MOST_PARAMETERS = 8_192, 64
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z0-9_.%]+)(?::([1-9][0-9]{0,3})|(\*))?")
_RESERVED = "-._~:/?#[]@!$&'()*+,;="
_TRIPLET = re.compile(r"%[0-9A-Fa-f]{2}")


class _Kind(msgspec.Struct, frozen=True):
    """How an expression with this sign is written out."""

    first: str = ""
    between: str = ","
    named: bool = False
    # Where a name stands without "=" when its value is empty.
    bare: bool = False
    reserved: bool = False
    # A template without it is another resource; without these others it is only a wider one.
    required: bool = False


_KINDS = {
    "": _Kind(required=True),
    "+": _Kind(reserved=True, required=True),
    "#": _Kind(first="#", reserved=True, required=True),
    ".": _Kind(first=".", between="."),
    "/": _Kind(first="/", between="/"),
    ";": _Kind(first=";", between=";", named=True, bare=True),
    "?": _Kind(first="?", between="&", named=True),
    "&": _Kind(first="&", between="&", named=True),
}


class Parameter(msgspec.Struct, frozen=True):
    """Something a template has a place for."""

    name: str
    required: bool


def parameters(template: str) -> list[Parameter]:
    """In the order they occur, each once; raises InputError where it is no template."""
    found: dict[str, bool] = {}
    for _, kind, variables in _expressions(template):
        for name, _ in variables:
            found[name] = found.get(name, False) or kind.required
    if len(found) > MOST_PARAMETERS:
        raise InputError(f"A template has at most {MOST_PARAMETERS} parameters.")
    return [Parameter(name, required) for name, required in found.items()]


def filled(template: str, values: dict[str, Any]) -> str:
    """The URI; raises InputError naming the parameter that is missing, unknown or no text."""
    known = parameters(template)
    given = _checked(known, values)
    made: list[str] = []
    at = 0
    for match, kind, variables in _expressions(template):
        made += [template[at : match.start()], _written(kind, variables, given)]
        at = match.end()
    uri = "".join([*made, template[at:]])
    if len(uri) > LONGEST:
        raise InputError(f"With these values its URI is longer than {LONGEST:,} characters.")
    return uri


def _checked(known: list[Parameter], values: dict[str, Any]) -> dict[str, str]:
    names = [each.name for each in known]
    for name, value in values.items():
        if name not in names:
            raise InputError(f"It has no parameter {name[:80]!r}.", remedy=f"It has: {', '.join(names)}.")
        if not isinstance(value, str):
            raise InputError(f"The parameter {name[:80]!r} is a text.")
    missing = [each.name for each in known if each.required and not values.get(each.name)]
    if missing:
        raise InputError(f"It needs a value for {', '.join(missing)}.")
    return {name: value for name, value in values.items() if value}


def _expressions(template: str) -> Iterator[tuple[re.Match[str], _Kind, list[tuple[str, int]]]]:
    """Each with what kind it is, and its variables with how much of them counts (0: all)."""
    if len(template) > LONGEST:
        raise InputError(f"A template has at most {LONGEST:,} characters.")
    if re.search(r"[{}]", _EXPRESSION.sub("", template)):
        raise _unreadable()
    for match in _EXPRESSION.finditer(template):
        sign = match[1][:1] if match[1][:1] in _KINDS else ""
        found = [_VARIABLE.fullmatch(each) for each in match[1].removeprefix(sign).split(",")]
        if None in found:
            raise _unreadable()
        yield match, _KINDS[sign], [(each[1], int(each[2] or 0)) for each in found if each]


def _written(kind: _Kind, variables: list[tuple[str, int]], given: dict[str, str]) -> str:
    parts = []
    for name, most in variables:
        if (value := given.get(name)) is None:
            continue
        text = _encoded(value[:most] if most else value, kind.reserved)
        parts.append(
            f"{name}={text}" if kind.named and (text or not kind.bare) else name if kind.named else text
        )
    return kind.first + kind.between.join(parts) if parts else ""


def _encoded(value: str, reserved: bool) -> str:
    if not reserved:
        return quote(value, safe="-._~", errors="replace")
    kept = _TRIPLET.findall(value)
    plain = [quote(each, safe=_RESERVED, errors="replace") for each in _TRIPLET.split(value)]
    return plain[0] + "".join(f"{one}{rest}" for one, rest in zip(kept, plain[1:], strict=True))


def _unreadable() -> InputError:
    return InputError("This is no template we can read.", remedy="Attach a resource by its URI.")
