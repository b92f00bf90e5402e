"""The phase a person set, for a session, a project or the user."""

from __future__ import annotations

from checkrein.store import Reader, Transaction


def phase_for(reader: Reader, project: str, session: str) -> str | None:
    """The session's phase, else the project's, else the user's, else none."""
    rows = reader.query(
        "SELECT name FROM phase WHERE (project = '' AND session = ?) OR (project = ? AND session = '') "
        "OR (project = '' AND session = '') ORDER BY session = '', project = '' LIMIT 1",
        (session, project),
    )
    return str(rows[0][0]) if rows else None


def set_phase(tx: Transaction, name: str, now: float, *, project: str = "", session: str = "") -> None:
    """Set it for a session (by its id), a project, or with neither for the user."""
    tx.execute(
        "INSERT INTO phase (project, session, name, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (project, session) DO UPDATE SET name = excluded.name, at = excluded.at",
        ("" if session else project, session, name, now),
    )


def clear_phase(tx: Transaction, *, project: str = "", session: str = "") -> int:
    """Forget what was set there; the number of phases forgotten."""
    return tx.execute(
        "DELETE FROM phase WHERE project = ? AND session = ?", ("" if session else project, session)
    )


def all_phases(reader: Reader) -> list[tuple[str, str, str, float]]:
    """(project, session, name, when), the user's first."""
    rows = reader.query("SELECT project, session, name, at FROM phase ORDER BY project, session")
    return [(row[0], row[1], row[2], row[3]) for row in rows]
