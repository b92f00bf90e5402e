"""Project policy files a person has accepted, by path and content hash."""

from __future__ import annotations

from checkrein.store import Reader, Transaction
from checkrein.store.changes import changed


def is_accepted(reader: Reader, path: str, sha256: str) -> bool:
    return bool(reader.query("SELECT 1 FROM accepted_policy WHERE path = ? AND sha256 = ?", (path, sha256)))


def accept(tx: Transaction, path: str, sha256: str, now: float) -> None:
    tx.execute(
        "INSERT INTO accepted_policy (path, sha256, at) VALUES (?, ?, ?) "
        "ON CONFLICT (path, sha256) DO NOTHING",
        (path, sha256, now),
    )
    changed(tx, "policies")


def revoke(tx: Transaction, path: str) -> int:
    """Forget every accepted version of a file."""
    count = tx.execute("DELETE FROM accepted_policy WHERE path = ?", (path,))
    changed(tx, "policies")
    return count
