"""Where our hooks were registered, by agent and settings folder; an empty folder is the user's own."""

from __future__ import annotations

from checkrein.store import Reader, Transaction


def add_installation(tx: Transaction, agent: str, folder: str, now: float) -> None:
    tx.execute(
        "INSERT INTO installation (agent, folder, at) VALUES (?, ?, ?) "
        "ON CONFLICT (agent, folder) DO UPDATE SET at = excluded.at",
        (agent, folder, now),
    )


def remove_installation(tx: Transaction, agent: str, folder: str) -> int:
    return tx.execute("DELETE FROM installation WHERE agent = ? AND folder = ?", (agent, folder))


def installations(reader: Reader) -> list[tuple[str, str]]:
    """(agent, folder) of every place we were installed to."""
    rows = reader.query("SELECT agent, folder FROM installation ORDER BY agent, folder")
    return [(row[0], row[1]) for row in rows]
