"""Remembered answers: made, found, used, revoked. A use is counted in the transaction that uses it."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.errors import NotFoundError
from checkrein.store import Reader, Transaction

_COLUMNS = (
    "id, what, label, project, session, server, tool, body, until, uses, used, made_at, made_by, channel, "
    "entry, last_used_at, revoked_at, revoked_by"
)
_NAMES = _COLUMNS.split(", ")


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that holds for more than one call. `body` is a binding (exact), a family, or empty (tool)."""

    id: str
    what: str
    label: str
    project: str
    session: str = ""
    server: str | None = None
    tool: str
    body: str = ""
    until: float | None = None
    uses: int | None = None
    used: int = 0
    made_at: float
    made_by: str
    channel: str
    entry: str
    last_used_at: float | None = None
    revoked_at: float | None = None
    revoked_by: str = ""


def add_grant(tx: Transaction, grant: Grant) -> None:
    marks = ", ".join("?" * len(_NAMES))
    tx.execute(
        f"INSERT INTO grants ({_COLUMNS}) VALUES ({marks})",  # noqa: S608
        tuple(getattr(grant, name) for name in _NAMES),
    )


def live_grants(
    reader: Reader, project: str, session: str, server: str | None, tool: str, now: float
) -> list[Grant]:
    """Grants that could cover a call of this tool now, oldest first."""
    same = "server IS NULL" if server is None else "server = ?"
    given: tuple[Any, ...] = () if server is None else (server,)
    sql = (
        f"SELECT {_COLUMNS} FROM grants WHERE tool = ? AND project = ? AND {same} "  # noqa: S608
        "AND (session = '' OR session = ?) AND revoked_at IS NULL AND (until IS NULL OR until > ?) "
        "AND (uses IS NULL OR used < uses) ORDER BY made_at, id"
    )
    return [_grant(row) for row in reader.query(sql, (tool, project, *given, session, now))]


def use_grant(tx: Transaction, grant_id: str, now: float) -> bool:
    """Count one use; False when it is used up, over or revoked by now."""
    return bool(
        tx.execute(
            "UPDATE grants SET used = used + 1, last_used_at = ? WHERE id = ? AND revoked_at IS NULL "
            "AND (until IS NULL OR until > ?) AND (uses IS NULL OR used < uses)",
            (now, grant_id, now),
        )
    )


def all_grants(reader: Reader) -> list[Grant]:
    """Every grant that was not revoked, newest first."""
    sql = f"SELECT {_COLUMNS} FROM grants WHERE revoked_at IS NULL ORDER BY made_at DESC, id"  # noqa: S608
    return [_grant(row) for row in reader.query(sql)]


def get_grant(reader: Reader, grant_id: str) -> Grant:
    rows = reader.query(f"SELECT {_COLUMNS} FROM grants WHERE id = ?", (grant_id,))  # noqa: S608
    if not rows:
        raise NotFoundError(f"There is no grant {grant_id}.", remedy="See `checkrein grants list`.")
    return _grant(rows[0])


def grant_of(reader: Reader, entry: str) -> Grant | None:
    """The grant that the answer to a question made, if it made one."""
    rows = reader.query(f"SELECT {_COLUMNS} FROM grants WHERE entry = ?", (entry,))  # noqa: S608
    return _grant(rows[0]) if rows else None


def revoke_grant(tx: Transaction, grant_id: str, actor: str, now: float) -> bool:
    return bool(
        tx.execute(
            "UPDATE grants SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at IS NULL",
            (now, actor, grant_id),
        )
    )


def end_session_grants(tx: Transaction, session: str, now: float) -> int:
    """What was granted for a session ends with it."""
    return tx.execute(
        "UPDATE grants SET revoked_at = ?, revoked_by = 'session end' "
        "WHERE session = ? AND session <> '' AND revoked_at IS NULL",
        (now, session),
    )


def _grant(row: tuple[Any, ...]) -> Grant:
    return Grant(**dict(zip(_NAMES, row, strict=True)))
