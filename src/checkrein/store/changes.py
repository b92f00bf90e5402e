"""Counters that say whether something cached has changed, also when another process changed it."""

from __future__ import annotations

from checkrein.store import Reader, Transaction


def changed(tx: Transaction, what: str) -> None:
    tx.execute(
        "INSERT INTO change (what, number) VALUES (?, 1) "
        "ON CONFLICT (what) DO UPDATE SET number = change.number + 1",
        (what,),
    )


def change_number(reader: Reader, what: str) -> int:
    rows = reader.query("SELECT number FROM change WHERE what = ?", (what,))
    return int(rows[0][0]) if rows else 0


def set_number(tx: Transaction, what: str, number: int) -> None:
    tx.execute(
        "INSERT INTO change (what, number) VALUES (?, ?) "
        "ON CONFLICT (what) DO UPDATE SET number = excluded.number",
        (what, number),
    )


def change_numbers(reader: Reader) -> dict[str, int]:
    """All counters at once."""
    return {row[0]: row[1] for row in reader.query("SELECT what, number FROM change")}
