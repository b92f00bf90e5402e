"""The hash chain, pure: how records are linked and how a broken link is found."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any

import msgspec

from checkrein.call import canonical

GENESIS = "0" * 64
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Link(msgspec.Struct, frozen=True):
    """A record as it is stored: its columns, the canonical body, and the hash that seals both."""

    seq: int
    at: float
    kind: str
    entry: str
    body: str
    hash: str


class Break(msgspec.Struct, frozen=True):
    """The first place where the record stops being what was written."""

    seq: int
    reason: str


def body_of(seq: int, at: float, kind: str, entry: str, data: dict[str, Any]) -> str:
    """The canonical JSON a record's hash covers."""
    said = {"at": at, "data": data, "entry": entry, "kind": kind, "seq": seq}
    try:
        return _encode(said).decode()
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        # INVARIANT: whatever a call holds, its record can be read back.
        return canonical(legible(said)).decode()


def said_in(body: str) -> dict[str, Any]:
    """What a body says; raises ValueError when it says nothing."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return _said_before(body)


def _said_before(body: str) -> dict[str, Any]:
    """Older records may hold halves of letters, spelled as escapes."""
    try:
        found = legible(json.loads(body))
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def legible(value: Any) -> Any:
    """The value with halves of letters, and numbers that are none, in a spelling any reader takes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        found: dict[Any, Any] = {}
        for key, item in value.items():
            spelled = legible(key)
            # INVARIANT: no part hides another by a name that comes to the same spelling.
            found[f"{spelled} {len(found)}" if spelled in found else spelled] = legible(item)
        return found
    if isinstance(value, (list, tuple)):
        return [legible(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def seal(previous: str, body: str) -> str:
    """The hash that ties a body to everything before it."""
    return hashlib.sha256((previous + body).encode()).hexdigest()


def first_break(links: Iterable[Link], *, seq: int = 0, previous: str = GENESIS) -> Break | tuple[int, str]:
    """The first broken link after (`seq`, `previous`), or the (seq, hash) the chain ends with."""
    for link in links:
        if link.seq != seq + 1:
            return Break(seq + 1, f"record {seq + 1} is missing")
        if seal(previous, link.body) != link.hash:
            return Break(link.seq, f"record {link.seq} was changed, or one before it was replaced")
        if wrong := _changed_column(link):
            return Break(link.seq, f"record {link.seq}: its `{wrong}` column was changed")
        seq, previous = link.seq, link.hash
    return seq, previous


def _changed_column(link: Link) -> str:
    """The column that no longer says what the sealed body says, if any."""
    try:
        body = said_in(link.body)
    except ValueError:
        return "body"
    return next(
        (name for name in ("seq", "at", "kind", "entry") if getattr(link, name) != body.get(name)), ""
    )
