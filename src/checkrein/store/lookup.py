"""The ledger's card index: entries by term, newest first. An entry may be filed a little after its record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkrein.store import Reader, Transaction
from checkrein.store.changes import change_number, set_number

_FILED = "filed"


def file(tx: Transaction, upto: int, cards: Iterable[tuple[str, Sequence[str]]]) -> None:
    """File entries under their terms; every record up to `upto` is filed then."""
    rows = sorted((term, entry) for entry, terms in cards for term in terms)
    tx.insert("INSERT INTO lookup (term, entry)", rows, "ON CONFLICT DO NOTHING")
    set_number(tx, _FILED, upto)


def filed(reader: Reader) -> int:
    """The last record whose entry is filed."""
    return change_number(reader, _FILED)


def find(reader: Reader, terms: Sequence[str], low: str, high: str, limit: int) -> list[str]:
    """Filed entries under all the terms, `low` <= id < `high` (if given), newest first."""
    bounds = " AND x.entry >= ?" + (" AND x.entry < ?" if high else "")
    edges = (low, high) if high else (low,)
    if not terms:
        sql = f"SELECT x.entry FROM record x WHERE x.kind = 'decided'{bounds} ORDER BY x.entry DESC LIMIT ?"  # noqa: S608
        return [row[0] for row in reader.query(sql, (*edges, limit))]
    also = " AND EXISTS (SELECT 1 FROM lookup y WHERE y.term = ? AND y.entry = x.entry)" * (len(terms) - 1)
    sql = f"SELECT x.entry FROM lookup x WHERE x.term = ?{bounds}{also} ORDER BY x.entry DESC LIMIT ?"  # noqa: S608
    return [row[0] for row in reader.query(sql, (terms[0], *edges, *terms[1:], limit))]


def is_filed(reader: Reader, entry: str, terms: Sequence[str]) -> bool:
    """Whether the entry can be found under every one of its terms."""
    marks = ", ".join("?" * len(terms))
    sql = f"SELECT count(*) FROM lookup WHERE entry = ? AND term IN ({marks})"  # noqa: S608
    return bool(reader.query(sql, (entry, *terms))[0][0] == len(set(terms)))
