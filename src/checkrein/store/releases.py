"""Releases: one blocked critical call that may pass once, soon."""

from __future__ import annotations

from checkrein.store import Reader, Transaction


def add_release(tx: Transaction, entry: str, binding: str, now: float, expires_at: float, actor: str) -> None:
    """A new release of the same call replaces the last one."""
    tx.execute(
        "INSERT INTO release (entry, binding, made_at, expires_at, actor, used_at) "
        "VALUES (?, ?, ?, ?, ?, NULL) "
        "ON CONFLICT (entry) DO UPDATE SET made_at = excluded.made_at, expires_at = excluded.expires_at, "
        "actor = excluded.actor, used_at = NULL",
        (entry, binding, now, expires_at, actor),
    )


def released(reader: Reader, binding: str, now: float) -> str | None:
    """The entry whose release covers exactly this call now."""
    rows = reader.query(
        "SELECT entry FROM release WHERE binding = ? AND used_at IS NULL AND expires_at > ? "
        "ORDER BY made_at LIMIT 1",
        (binding, now),
    )
    return str(rows[0][0]) if rows else None


def use_release(tx: Transaction, entry: str, now: float) -> bool:
    """Take it; False when it was taken or is over."""
    return bool(
        tx.execute(
            "UPDATE release SET used_at = ? WHERE entry = ? AND used_at IS NULL AND expires_at > ?",
            (now, entry, now),
        )
    )
