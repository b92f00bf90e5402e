"""Stored rules: create, list, update, delete, reorder. Every change moves the `rules` counter."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.errors import NotFoundError
from checkrein.store import Reader, Transaction
from checkrein.store.changes import changed

_COLUMNS = "id, body, uses, created_at, updated_at"


class StoredRule(msgspec.Struct, frozen=True):
    """A rule as it was written (`body`), its remaining uses and its times."""

    id: str
    body: dict[str, Any]
    uses: int | None
    created_at: float
    updated_at: float


def all_rules(reader: Reader) -> list[StoredRule]:
    """Every stored rule in creation order."""
    return [_stored(row) for row in reader.query(f"SELECT {_COLUMNS} FROM rule ORDER BY position")]  # noqa: S608


def get_rule(reader: Reader, rule_id: str) -> StoredRule:
    rows = reader.query(f"SELECT {_COLUMNS} FROM rule WHERE id = ?", (rule_id,))  # noqa: S608
    if not rows:
        raise NotFoundError(f"There is no stored rule {rule_id}.", remedy="See `checkrein rules list`.")
    return _stored(rows[0])


def add_rule(tx: Transaction, rule_id: str, body: dict[str, Any], now: float) -> None:
    tx.execute(
        "INSERT INTO rule (id, position, body, uses, created_at, updated_at) "
        "VALUES (?, (SELECT coalesce(max(position), 0) + 1 FROM rule), ?, ?, ?, ?)",
        (rule_id, _encoded(body), body.get("uses"), now, now),
    )
    changed(tx, "rules")


def update_rule(tx: Transaction, rule_id: str, body: dict[str, Any], now: float) -> None:
    found = tx.execute(
        "UPDATE rule SET body = ?, uses = ?, updated_at = ? WHERE id = ?",
        (_encoded(body), body.get("uses"), now, rule_id),
    )
    if not found:
        get_rule(tx, rule_id)
    changed(tx, "rules")


def reorder_rules(tx: Transaction, order: list[str]) -> None:
    """Give the stored rules this creation order, which breaks ties between equal priorities."""
    for position, rule_id in enumerate(order, start=1):
        tx.execute("UPDATE rule SET position = ? WHERE id = ?", (position, rule_id))
    changed(tx, "rules")


def delete_rule(tx: Transaction, rule_id: str) -> StoredRule:
    gone = get_rule(tx, rule_id)
    tx.execute("DELETE FROM rule WHERE id = ?", (rule_id,))
    changed(tx, "rules")
    return gone


def use_rule(tx: Transaction, rule_id: str) -> bool:
    """Take one use of a rule that counts them; False when another call took the last one."""
    taken = tx.execute("UPDATE rule SET uses = uses - 1 WHERE id = ? AND uses > 0", (rule_id,)) == 1
    if taken:
        changed(tx, "rules")
    return taken


def _encoded(body: dict[str, Any]) -> str:
    return msgspec.json.encode({key: value for key, value in body.items() if key != "uses"}).decode()


def _stored(row: tuple[Any, ...]) -> StoredRule:
    return StoredRule(row[0], msgspec.json.decode(row[1]), row[2], row[3], row[4])
