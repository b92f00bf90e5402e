"""The ledger's rows: append, read in order, and find by what a person remembers of a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from checkrein.store import Reader, Row, Transaction

COLUMNS = "seq, at, kind, entry, project, session, tool, decision, body, hash"
_SLICE = 2000


def append(tx: Transaction, row: Row, domains: Sequence[str] = ()) -> None:
    """One record (columns in the order of COLUMNS); domains only for decisions."""
    tx.execute(f"INSERT INTO record ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
    for domain in domains:
        tx.execute("INSERT INTO record_domain (domain, seq) VALUES (?, ?)", (domain, row[0]))


def head(reader: Reader) -> tuple[int, str] | None:
    """Number and hash of the newest record."""
    rows = reader.query("SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1")
    return (rows[0][0], rows[0][1]) if rows else None


def after(reader: Reader, seq: int, kinds: Sequence[str] = ()) -> Iterator[Row]:
    """Every record after `seq` in order, read in slices so that a long ledger is never held at once."""
    only = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    while True:
        sql = f"SELECT {COLUMNS} FROM record WHERE seq > ?{only} ORDER BY seq LIMIT {_SLICE}"  # noqa: S608
        rows = reader.query(sql, (seq, *kinds))
        yield from rows
        if len(rows) < _SLICE:
            return
        seq = rows[-1][0]


def of_entries(reader: Reader, entries: Sequence[str]) -> list[Row]:
    """All records of the given calls, oldest first."""
    if not entries:
        return []
    marks = ", ".join("?" * len(entries))
    return reader.query(
        f"SELECT {COLUMNS} FROM record WHERE entry IN ({marks}) AND entry <> '' ORDER BY seq",  # noqa: S608
        tuple(entries),
    )


def find(
    reader: Reader, filters: dict[str, Any], *, limit: int, before: int | None = None
) -> list[tuple[int, str]]:
    """(seq, entry) of decisions that pass every filter, newest first.

    Filters: project, session, tool, decision, domain (exact), entry (prefix), since and until (times).
    """
    tables, where, values = ["record r"], ["r.kind = 'decided'"], []
    for name, value in filters.items():
        if name == "domain":
            tables.append("record_domain d")
            where.append("d.seq = r.seq AND d.domain = ?")
        elif name == "entry":
            where.append("r.entry <> '' AND r.entry >= ? AND r.entry < ?")
            values += [value, f"{value}\U0010ffff"]
            continue
        else:
            where.append(f"r.{_COMPARISON[name]} ?")
        values.append(value)
    if before is not None:
        where.append("r.seq < ?")
        values.append(before)
    order = "d.seq" if "domain" in filters else "r.seq"
    rows = reader.query(
        f"SELECT r.seq, r.entry FROM {', '.join(tables)} WHERE {' AND '.join(where)} "  # noqa: S608
        f"ORDER BY {order} DESC LIMIT ?",
        (*values, limit),
    )
    return [(row[0], row[1]) for row in rows]


_COMPARISON = {
    "project": "project =",
    "session": "session =",
    "tool": "tool =",
    "decision": "decision =",
    "since": "at >=",
    "until": "at <",
}


def checkpoints(reader: Reader) -> list[tuple[int, str, str]]:
    """(seq, body, signature) of every checkpoint, oldest first."""
    return [
        (r[0], r[1], r[2]) for r in reader.query("SELECT seq, body, signature FROM checkpoint ORDER BY seq")
    ]


def last_checkpoint(reader: Reader) -> tuple[int, str, str] | None:
    rows = reader.query("SELECT seq, body, signature FROM checkpoint ORDER BY seq DESC LIMIT 1")
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def add_checkpoint(tx: Transaction, seq: int, body: str, signature: str) -> None:
    tx.execute("INSERT INTO checkpoint (seq, body, signature) VALUES (?, ?, ?)", (seq, body, signature))
