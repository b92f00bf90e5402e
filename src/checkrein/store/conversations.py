"""Conversations: their rows, the tree of messages, and the counts that follow every change of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from checkrein.store import Reader, Row, Transaction

HERE, COMING, GOING = "here", "coming", "going"
SESSION = (
    "id title created_at updated_at last_message_at archived_at pinned_at color provider model project "
    "system head message_count tools_off threshold retention_tokens auto_compress tainted_by metadata"
).split()
MESSAGE = (
    "id role parts sequence deleted summary parent state created_at provider model input_tokens "
    "output_tokens error run raw"
).split()
SNAPSHOT = "id text cutoff tokens created_at estimated kind".split()
_INTO = {
    "chat_session": "INSERT INTO chat_session",
    "chat_message": "INSERT INTO chat_message",
    "chat_snapshot": "INSERT INTO chat_snapshot",
    "chat_run": "INSERT INTO chat_run",
}
_COUNTED = "FROM chat_message WHERE session = ? AND NOT deleted"


def insert(tx: Transaction, table: str, values: Mapping[str, Any]) -> None:
    """One row; the names are ours, never a user's."""
    marks = ", ".join("?" * len(values))
    tx.execute(f"{_INTO[table]} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))


def change(tx: Transaction, table: str, changes: Mapping[str, Any], where: str, given: Sequence[Any]) -> int:
    """The number of rows that were there to change."""
    sets = ", ".join(f"{name} = ?" for name in changes)
    return tx.execute(f"UPDATE {table} SET {sets} WHERE {where}", (*changes.values(), *given))  # noqa: S608


def get_session(reader: Reader, id: str) -> Row | None:  # noqa: A002 - the word of the table
    found = reader.query(
        f"SELECT {', '.join(SESSION)} FROM chat_session WHERE id = ? AND presence = ?",  # noqa: S608
        (id, HERE),
    )
    return found[0] if found else None


def list_sessions(reader: Reader, *, archived: bool, limit: int, offset: int) -> list[Row]:
    """Pinned ones first, then the last changed; archived ones or the others."""
    return reader.query(
        f"SELECT {', '.join(SESSION)} FROM chat_session "  # noqa: S608
        f"WHERE presence = ? AND archived_at IS {'NOT ' if archived else ''}NULL "
        "ORDER BY pinned_at IS NULL, updated_at DESC, number DESC LIMIT ? OFFSET ?",
        (HERE, limit, offset),
    )


def count_sessions(reader: Reader, *, archived: bool) -> int:
    where = f"presence = ? AND archived_at IS {'NOT ' if archived else ''}NULL"
    return int(reader.query(f"SELECT count(*) FROM chat_session WHERE {where}", (HERE,))[0][0])  # noqa: S608


def sessions_in(reader: Reader, *presences: str) -> list[str]:
    """The ids of sessions an import or a deletion left half done."""
    marks = ", ".join("?" * len(presences))
    rows = reader.query(f"SELECT id FROM chat_session WHERE presence IN ({marks})", presences)  # noqa: S608
    return [row[0] for row in rows]


def number_of(reader: Reader, table: str, id: str) -> int | None:  # noqa: A002 - the word of the table
    found = reader.query(f"SELECT number FROM {table} WHERE id = ?", (id,))  # noqa: S608
    return int(found[0][0]) if found else None


def get_message(reader: Reader, id: str) -> tuple[str, int, Row] | None:  # noqa: A002 - the word of the table
    """A message's session and number, then its row."""
    found = reader.query(
        f"SELECT m.session, m.number, {', '.join(f'm.{name}' for name in MESSAGE)} FROM chat_message m "  # noqa: S608
        "JOIN chat_session s ON s.id = m.session WHERE m.id = ? AND s.presence = ?",
        (id, HERE),
    )
    return (found[0][0], found[0][1], found[0][2:]) if found else None


def messages_of(reader: Reader, session: str) -> list[Row]:
    """Every message of all branches, deleted ones too, in order."""
    return reader.query(
        f"SELECT {', '.join(MESSAGE)} FROM chat_message WHERE session = ? ORDER BY sequence",  # noqa: S608
        (session,),
    )


def tree_of(reader: Reader, session: str) -> list[tuple[str, str, bool]]:
    """Id, parent and whether it is deleted, in order: a parent comes before what follows it."""
    rows = reader.query(
        "SELECT id, parent, deleted FROM chat_message WHERE session = ? ORDER BY sequence", (session,)
    )
    return [(row[0], row[1], bool(row[2])) for row in rows]


def last_sequence(reader: Reader, session: str) -> int:
    rows = reader.query("SELECT max(sequence) FROM chat_message WHERE session = ?", (session,))
    return int(rows[0][0] or 0)


def recount(tx: Transaction, session: str) -> None:
    """Counts what is there, over all branches; for changes that are not just one message more."""
    tx.execute(
        f"UPDATE chat_session SET message_count = (SELECT count(*) {_COUNTED}), "  # noqa: S608
        f"last_message_at = (SELECT max(created_at) {_COUNTED}) WHERE id = ?",
        (session, session, session),
    )


def statuses_of(reader: Reader, *, session: str = "", message: str = "") -> dict[tuple[str, str], str]:
    """How each call of a session, or of one message, stands."""
    where, given = ("message", message) if message else ("session", session)
    rows = reader.query(f"SELECT run, call_id, status FROM chat_call WHERE {where} = ?", (given,))  # noqa: S608
    return {(run, call): status for run, call, status in rows}


def snapshots_of(reader: Reader, session: str) -> list[Row]:
    return reader.query(
        f"SELECT {', '.join(SNAPSHOT)} FROM chat_snapshot WHERE session = ? ORDER BY number",  # noqa: S608
        (session,),
    )


def remove_some(tx: Transaction, session: str, most: int) -> bool:
    """Takes some messages and their words away, or, when there are none left, all the rest of a session."""
    first = "SELECT number FROM chat_message WHERE session = ? ORDER BY number LIMIT ?"
    numbers = tx.query(first, (session, most))
    if numbers:
        tx.execute_many("DELETE FROM chat_words WHERE rowid = ?", numbers)
        tx.execute_many("DELETE FROM chat_message WHERE number = ?", numbers)
        return False
    number = number_of(tx, "chat_session", session)
    tx.execute("DELETE FROM chat_call WHERE session = ?", (session,))
    tx.execute("DELETE FROM chat_run WHERE session = ?", (session,))
    tx.execute("DELETE FROM chat_snapshot WHERE session = ?", (session,))
    tx.execute("DELETE FROM chat_title_words WHERE rowid = ?", (number,))
    tx.execute("DELETE FROM chat_session WHERE id = ?", (session,))
    return True
