"""The runs of conversations and their calls: whatever changes a state says which one it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from checkrein.store import Reader, Row, Transaction
from checkrein.store.conversations import change

RUN = (
    "id session state holder user_message provider model persona routed rounds input_tokens output_tokens "
    "error created_at ended_at"
).split()
CALL = (
    "run call_id session message name server tool arguments status definition entry verdict reason "
    "answered_by asked edited output error created_at started_at completed_at"
).split()
OPEN = ("running", "waiting")
OPEN_CALL = ("pending", "running")


def get_run(reader: Reader, id: str) -> Row | None:  # noqa: A002 - the word of the table
    found = _runs(reader, "id = ?", (id,))
    return found[0] if found else None


def runs_of(reader: Reader, session: str, limit: int) -> list[Row]:
    """The newest first."""
    return _runs(reader, "session = ?", (session,), f"number DESC LIMIT {int(limit)}")


def unfinished_runs(reader: Reader) -> list[Row]:
    """Those that run or wait, oldest first."""
    return _runs(reader, "state IN (?, ?)", OPEN)


def change_run(
    tx: Transaction,
    id: str,  # noqa: A002 - the word of the table
    expect: Sequence[str],
    holder: str | None,
    changes: Mapping[str, Any],
) -> bool:
    """Changes a run that is in one of these states, and held by `holder` if one is named."""
    # INVARIANT: of all who would go on with a run, or end it, one does.
    where, given = f"id = ? AND state IN ({_marks(expect)})", (id, *expect)
    if holder is not None:
        where, given = f"{where} AND holder = ?", (*given, holder)
    return bool(change(tx, "chat_run", changes, where, given))


def end_all(tx: Transaction, session: str) -> None:
    """Nobody goes on with anything of this session."""
    where = f"session = ? AND state IN ({_marks(OPEN)})"
    change(tx, "chat_run", {"state": "aborted"}, where, (session, *OPEN))
    where = f"session = ? AND status IN ({_marks(OPEN_CALL)})"
    change(tx, "chat_call", {"status": "cancelled"}, where, (session, *OPEN_CALL))


def add_call(tx: Transaction, values: Mapping[str, Any]) -> bool:
    """Writes a call down once; False when its run has one of that id."""
    # INVARIANT: a call that is known changes by compare-and-set alone.
    return bool(
        tx.execute(
            f"INSERT INTO chat_call ({', '.join(values)}) VALUES ({_marks(tuple(values))}) "  # noqa: S608
            "ON CONFLICT (run, call_id) DO NOTHING",
            tuple(values.values()),
        )
    )


def get_call(reader: Reader, run: str, call: str) -> Row | None:
    found = calls_where(reader, "run = ? AND call_id = ?", (run, call))
    return found[0] if found else None


def calls_where(reader: Reader, where: str, given: Sequence[Any]) -> list[Row]:
    """In the order they were made."""
    return reader.query(f"SELECT {', '.join(CALL)} FROM chat_call WHERE {where} ORDER BY number", given)  # noqa: S608


def change_call(
    tx: Transaction, run: str, call: str, expect: Sequence[str], changes: Mapping[str, Any]
) -> bool:
    """Changes a call that has one of these statuses."""
    # INVARIANT: of all who would carry a call out, one does.
    where = f"run = ? AND call_id = ? AND status IN ({_marks(expect)})"
    return bool(change(tx, "chat_call", changes, where, (run, call, *expect)))


def _runs(reader: Reader, where: str, given: Sequence[Any], order: str = "number") -> list[Row]:
    return reader.query(f"SELECT {', '.join(RUN)} FROM chat_run WHERE {where} ORDER BY {order}", given)  # noqa: S608


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
