"""The ledger's rows: append, read in order, read by call; and the signed checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkrein.store import Reader, Row, Transaction

COLUMNS = "seq, at, kind, entry, body, hash"
_INTO = f"INSERT INTO record ({COLUMNS})"
_SLICE = 2000


def append(tx: Transaction, row: Row) -> None:
    """One record, columns in the order of COLUMNS."""
    tx.insert(_INTO, (row,))


def head(reader: Reader) -> tuple[int, str] | None:
    """Number and hash of the newest record."""
    rows = reader.query("SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1")
    return (rows[0][0], rows[0][1]) if rows else None


def after(reader: Reader, seq: int, kinds: Sequence[str] = (), *, holding: str = "") -> Iterator[Row]:
    """Every record after `seq` in order, read in slices so that a long ledger is never held at once.

    `holding`: of decisions, only those whose body holds this text.
    """
    only = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    if holding:
        only += " AND (kind <> 'decided' OR instr(body, ?))"
    while True:
        sql = f"SELECT {COLUMNS} FROM record WHERE seq > ?{only} ORDER BY seq LIMIT {_SLICE}"  # noqa: S608
        rows = reader.query(sql, (seq, *kinds, *([holding] if holding else ())))
        yield from rows
        if len(rows) < _SLICE:
            return
        seq = rows[-1][0]


def newest(reader: Reader, kind: str, begin: float, most: int) -> list[tuple[float, str]]:
    """Time and body of those of the newest `most` records that are of a kind and not older, newest first."""
    sql = (
        "SELECT at, body FROM record WHERE seq > (SELECT COALESCE(MAX(seq), 0) FROM record) - ? "
        "AND kind = ? AND at >= ? ORDER BY seq DESC"
    )
    return [(row[0], row[1]) for row in reader.query(sql, (most, kind, begin))]


def of_entries(reader: Reader, entries: Sequence[str]) -> list[Row]:
    """All records of the given calls, oldest first."""
    if not entries:
        return []
    marks = ", ".join("?" * len(entries))
    return reader.query(
        f"SELECT {COLUMNS} FROM record WHERE entry IN ({marks}) AND entry <> '' ORDER BY seq",  # noqa: S608
        tuple(entries),
    )


def hash_of(reader: Reader, seq: int) -> str:
    """The hash of one record; empty where there is none."""
    rows = reader.query("SELECT hash FROM record WHERE seq = ?", (seq,))
    return str(rows[0][0]) if rows else ""


def last_kind(reader: Reader) -> str:
    """What the newest record is; empty where there is none."""
    rows = reader.query("SELECT kind FROM record ORDER BY seq DESC LIMIT 1")
    return str(rows[0][0]) if rows else ""


def checkpoints(reader: Reader, *, after: int = 0) -> list[tuple[int, str, str]]:
    """(seq, body, signature) of every checkpoint of a later record than `after`, oldest first."""
    sql = "SELECT seq, body, signature FROM checkpoint WHERE seq > ? ORDER BY seq"
    return [(row[0], row[1], row[2]) for row in reader.query(sql, (after,))]


def last_checkpoint(reader: Reader) -> tuple[int, str, str] | None:
    rows = reader.query("SELECT seq, body, signature FROM checkpoint ORDER BY seq DESC LIMIT 1")
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def add_checkpoint(tx: Transaction, seq: int, body: str, signature: str) -> None:
    tx.execute("INSERT INTO checkpoint (seq, body, signature) VALUES (?, ?, ?)", (seq, body, signature))
