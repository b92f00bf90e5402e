"""What servers say about themselves, by its hash, and what a person decided about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from checkrein.store import Reader, Row, Transaction

SEEN, ACCEPTED, REFUSED, UNREADABLE = "seen", "accepted", "refused", "unreadable"
# Undecided versions of one definition kept at once: whoever changes it all the time gets no more room.
MOST_UNDECIDED = 4
_COLUMNS = "server, kind, name, hash, definition, state, seen_at, decided_at, actor"


class Pin(msgspec.Struct, frozen=True):
    """One version of one definition, word for word, and its standing."""

    server: str
    kind: str
    name: str
    hash: str
    definition: str
    state: str
    seen_at: float
    decided_at: float | None = None
    actor: str = ""


def pins_of(reader: Reader, server: str) -> list[Pin]:
    """Every version a server ever showed, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM pin WHERE server = ? ORDER BY seen_at, hash"  # noqa: S608
    return [_pin(row) for row in reader.query(sql, (server,))]


def see_pins(tx: Transaction, pins: Iterable[Pin]) -> list[Pin]:
    """Keep those that were never seen before; returns them."""
    sql = f"INSERT INTO pin ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608
    fresh = [pin for pin in pins if tx.execute(sql, _values(pin))]
    for pin in fresh:
        _make_room(tx, pin)
    return fresh


def decide_pin(tx: Transaction, pin: Pin) -> None:
    """A person's word on exactly this version."""
    tx.execute(
        f"INSERT INTO pin ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT (server, kind, name, hash) DO UPDATE SET definition = excluded.definition, "
        "state = excluded.state, seen_at = excluded.seen_at, decided_at = excluded.decided_at, "
        "actor = excluded.actor",
        _values(pin),
    )


def _make_room(tx: Transaction, pin: Pin) -> None:
    where = (pin.server, pin.kind, pin.name, SEEN)
    tx.execute(
        "DELETE FROM pin WHERE server = ? AND kind = ? AND name = ? AND state = ? AND hash NOT IN ("
        "SELECT hash FROM pin WHERE server = ? AND kind = ? AND name = ? AND state = ? "
        "ORDER BY hash = ? DESC, seen_at DESC LIMIT ?)",
        (*where, *where, pin.hash, MOST_UNDECIDED),
    )


def _values(pin: Pin) -> tuple[Any, ...]:
    return msgspec.structs.astuple(pin)


def _pin(row: Row) -> Pin:
    try:
        found = msgspec.convert(dict(zip(Pin.__struct_fields__, row, strict=True)), Pin)
    except msgspec.ValidationError:
        server, kind, name, hash = (str(each) for each in row[:4])  # noqa: A001 - the glossary's word
        found = Pin(server, kind, name, hash, "", UNREADABLE, 0.0)
    whole = hashlib.sha256(found.definition.encode(errors="replace")).hexdigest() == found.hash
    decided = found.state == SEEN or (found.state in (ACCEPTED, REFUSED) and found.decided_at is not None)
    # INVARIANT: a row that is not wholly what was written accepts nothing.
    return found if whole and decided else msgspec.structs.replace(found, state=UNREADABLE)
