"""The rules of the stateless era over HTTP: headers repeat what the body says, and must say the same. Pure.

The HTTP front asks before a request is handled; whatever routed on a header then routed on the truth.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from checkrein.doors.gateway.http_headers import METHOD, NAME, PARAM, VERSION, Found
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    STATELESS,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Message,
    RpcError,
    meta_of,
)

_STATUS = {
    METHOD_NOT_FOUND: 404,
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH), 400),
    **dict.fromkeys((MISSING_CAPABILITY, UNSUPPORTED_VERSION), 400),
}
# Methods whose target is repeated in a header, and the parameter that holds it.
_TARGETS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ANNOTATION = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_DECIMAL = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")
_KINDS = ("string", "integer", "boolean")
# Keywords of JSON Schema under which other schemas stand: alone, in a list, by name.
_ONE = frozenset(
    "additionalProperties contains contentSchema else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties".split()
)
_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties"))
_HANDSHAKE_HEADERS = frozenset(each.encode() for each in HANDSHAKE_VERSIONS)


class Declared(msgspec.Struct, frozen=True):
    """A parameter that is repeated in a header."""

    path: tuple[str, ...]
    header: bytes
    kind: str


def status_of(answer: Message) -> int:
    """The HTTP status of a stateless answer."""
    error = answer.get("error")
    return _STATUS.get(error.get("code", 0), 200) if isinstance(error, dict) else 200


def era_of(found: Found, message: Message) -> str:
    """Which era a posted message belongs to: what its header says, else what it says of itself."""
    version = found.get(VERSION)
    if version is None:
        return STATELESS if VERSION_KEY in meta_of(message.get("params", {})) else HANDSHAKE
    return HANDSHAKE if version.strip() in _HANDSHAKE_HEADERS else STATELESS


def check_version(version: Any) -> None:
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "This protocol version is not spoken here.", data)


def check_request(found: Found, message: Message) -> None:
    """Refuse a stateless request whose envelope is incomplete, or whose headers and body disagree."""
    params = message.get("params", {})
    meta = meta_of(params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta needs {' and '.join(missing)}.")
    version, method = meta[VERSION_KEY], message["method"]
    # INVARIANT: what headers say of a request is what its body says.
    _same(found, VERSION, version)
    _same(found, METHOD, method)
    target = params.get(_TARGETS[method]) if method in _TARGETS else None
    if target is not None:
        _same(found, NAME, target)
    check_version(version)


def _same(found: Found, header: bytes, said: Any) -> None:
    given = found.get(header)
    if given is None or decoded(given) != said:
        what = "is missing" if given is None else "does not say what the body says"
        raise RpcError(HEADER_MISMATCH, f"The header {header.decode()} {what}.")


def decoded(value: bytes) -> str | None:
    """A header's value: as it stands, or out of its base64 wrapping; None when that is torn."""
    text = value.strip().decode("latin-1")
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped is None:
        return text
    try:
        raw = base64.b64decode(wrapped[1], validate=True)
        # One value has one spelling: two would be read as equal here and as different elsewhere.
        return raw.decode() if base64.b64encode(raw).decode() == wrapped[1] else None
    except (binascii.Error, ValueError):
        return None


def declared(schema: Any) -> tuple[Declared, ...]:
    """The parameters a tool wants repeated; none at all when any declaration is not as it should be."""
    found: dict[bytes, Declared] = {}
    for path, each in _positions(schema):
        if _ANNOTATION not in each:
            continue
        name, kind = each[_ANNOTATION], each.get("type")
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name) or kind not in _KINDS:
            return ()
        header = PARAM + name.lower().encode()
        if header in found:
            return ()
        found[header] = Declared(path, header, kind)
    return tuple(found.values())


def _positions(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, Message]]:
    """Every schema in a schema, with its path where only properties lead to it."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while waiting:
        path, each = waiting.pop()
        if not isinstance(each, dict):
            continue
        yield path, each
        for word, value in each.items():
            if word == "properties" and isinstance(value, dict):
                waiting += [(None if path is None else (*path, name), sub) for name, sub in value.items()]
            elif word in _ONE:
                waiting.append((None, value))
            elif word in _LIST and isinstance(value, list):
                waiting += [(None, sub) for sub in value]
            elif word in _NAMED and isinstance(value, dict):
                waiting += [(None, sub) for sub in value.values()]


def check_parameters(found: Found, wanted: tuple[Declared, ...], arguments: Any) -> None:
    """INVARIANT: a declared parameter and its header come together and are equal, or do not come at all."""
    for each in wanted:
        value, given = _at(arguments, each.path), found.get(each.header)
        shown = _shown(value)
        if given is None and shown is None:
            continue
        name = each.header.decode()
        if given is None:
            raise RpcError(HEADER_MISMATCH, f"The header {name} is missing.")
        text = decoded(given)
        if shown is None or text is None or not _equal(each.kind, value, shown, text):
            raise RpcError(HEADER_MISMATCH, f"The header {name} does not say what the body says.")


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments


def _shown(value: Any) -> str | None:
    """A value as a header writes it; None where no header could."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:  # a number with more digits than anybody prints
        return None


def _equal(kind: str, value: Any, shown: str, text: str) -> bool:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    number = _DECIMAL.fullmatch(text) if kind == "integer" and whole else None
    return int(number[1]) == value if number else text == shown
