"""Scripts and their calls: every change of a run's state is a compare-and-set, so that one holder goes on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkrein.store import Reader, Transaction

RUNNING, WAITING = "running", "waiting"
ENDED = ("done", "failed", "cancelled")


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A script: whose it is, how far it got; `source`, `suspended` and `result` are sealed."""

    id: str
    owner: str
    session: str
    agent: str
    project: str
    profile: str
    language: str
    state: str
    holder: str
    made_at: float
    changed_at: float
    expires_at: float
    rests: int = 0
    calls: int = 0
    asks: int = 0
    refusals: int = 0
    tainted_by: str = ""
    source: str = ""
    suspended: str = ""
    result: str = ""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a script: requested, asked, decided, executing, then done, failed, denied or unknown."""

    run: str
    number: int
    tool: str
    argument_hash: str
    state: str
    entry: str
    line: int
    at: float
    arguments: str
    answer: str = ""


_RUN = ", ".join(RunRow.__struct_fields__)
_CALL = ", ".join(CallRow.__struct_fields__)
_INTO_CALLS = f"INSERT INTO run_call ({_CALL})"
_OR_UPDATE = (
    "ON CONFLICT (run, number) DO UPDATE SET "
    "state = excluded.state, entry = excluded.entry, at = excluded.at, answer = excluded.answer"
)


def add_run(tx: Transaction, run: RunRow) -> None:
    marks = ", ".join("?" * len(RunRow.__struct_fields__))
    tx.execute(f"INSERT INTO run ({_RUN}) VALUES ({marks})", msgspec.structs.astuple(run))  # noqa: S608


def get_run(reader: Reader, id: str) -> RunRow | None:  # noqa: A002 - the word of the table
    found = _runs(reader, "id = ?", (id,))
    return found[0] if found else None


def latest_runs(reader: Reader, limit: int) -> list[RunRow]:
    """The newest first."""
    return _runs(reader, "1 = 1", (), f"made_at DESC, id DESC LIMIT {int(limit)}")


def unfinished_runs(reader: Reader) -> list[RunRow]:
    """Those that run or wait, oldest first."""
    return _runs(reader, "state IN (?, ?)", (RUNNING, WAITING))


def overdue_runs(reader: Reader, now: float) -> list[RunRow]:
    """Those whose time is over, whatever their state."""
    return _runs(reader, "expires_at < ?", (now,))


def suspend_run(tx: Transaction, run: RunRow) -> bool:
    """Put a running script away as it waits; False when it is not its holder's any more."""
    return bool(
        tx.execute(
            "UPDATE run SET state = ?, rests = ?, suspended = ?, calls = ?, asks = ?, refusals = ?, "
            "tainted_by = ?, changed_at = ?, expires_at = ? "
            "WHERE id = ? AND state = ? AND holder = ? AND rests = ?",
            (
                WAITING,
                run.rests,
                run.suspended,
                run.calls,
                run.asks,
                run.refusals,
                run.tainted_by,
                run.changed_at,
                run.expires_at,
                run.id,
                RUNNING,
                run.holder,
                run.rests - 1,
            ),
        )
    )


def claim_run(tx: Transaction, run: RunRow, holder: str, now: float) -> bool:
    """Take a run as it was read to go on with it; False when somebody else did, or it went on meanwhile."""
    # INVARIANT: of all who would go on with a run, one does.
    return bool(
        tx.execute(
            "UPDATE run SET state = ?, holder = ?, changed_at = ? "
            "WHERE id = ? AND state = ? AND holder = ? AND rests = ?",
            (RUNNING, holder, now, run.id, run.state, run.holder, run.rests),
        )
    )


def end_run(tx: Transaction, run: RunRow, state: str, result: str, now: float, expires_at: float) -> bool:
    """Write down what came of it; only its holder can, once. What was suspended is gone with it."""
    return bool(
        tx.execute(
            "UPDATE run SET state = ?, result = ?, suspended = '', changed_at = ?, expires_at = ?, "
            "calls = ?, asks = ?, refusals = ?, tainted_by = ? WHERE id = ? AND state = ? AND holder = ?",
            (
                state,
                result,
                now,
                expires_at,
                run.calls,
                run.asks,
                run.refusals,
                run.tainted_by,
                run.id,
                RUNNING,
                run.holder,
            ),
        )
    )


def forget_run(tx: Transaction, id: str) -> None:  # noqa: A002 - the word of the table
    """Everything about a run; what it called stays in the ledger."""
    tx.execute("DELETE FROM run_call WHERE run = ?", (id,))
    tx.execute("DELETE FROM run WHERE id = ?", (id,))


def put_call(tx: Transaction, call: CallRow) -> None:
    """Write a call's row, or what became of it."""
    tx.insert(_INTO_CALLS, [msgspec.structs.astuple(call)], _OR_UPDATE)


def calls_of(reader: Reader, run: str) -> list[CallRow]:
    """The journal of a run, in the order of its calls."""
    rows = reader.query(f"SELECT {_CALL} FROM run_call WHERE run = ? ORDER BY number", (run,))  # noqa: S608
    return [CallRow(**dict(zip(CallRow.__struct_fields__, row, strict=True))) for row in rows]


def _runs(reader: Reader, where: str, given: Sequence[object], order: str = "made_at, id") -> list[RunRow]:
    rows = reader.query(f"SELECT {_RUN} FROM run WHERE {where} ORDER BY {order}", given)  # noqa: S608
    return [RunRow(**dict(zip(RunRow.__struct_fields__, row, strict=True))) for row in rows]
