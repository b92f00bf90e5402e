"""The hash chain, pure: how records are linked and how a broken link is found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from checkrein.call import canonical

GENESIS = "0" * 64
_decode = msgspec.json.Decoder().decode


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
    return canonical({"at": at, "data": data, "entry": entry, "kind": kind, "seq": seq}).decode()


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
    body = _decode(link.body)
    return next((name for name in ("seq", "at", "kind", "entry") if getattr(link, name) != body[name]), "")
