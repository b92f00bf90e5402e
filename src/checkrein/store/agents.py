"""Sessions of agents: who speaks for them, since when, for which project."""

from __future__ import annotations

import msgspec

from checkrein.store import Reader, Transaction

_COLUMNS = "agent, id, project, started_at, ended_at, process, process_started, attended"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session as its agent introduced it; `process` is 0 where we could not tell."""

    agent: str
    id: str
    project: str
    started_at: float
    ended_at: float | None = None
    process: int = 0
    process_started: str = ""
    attended: bool = False


def put_session(tx: Transaction, session: Session) -> None:
    """Note a session, or that an earlier one goes on in another process; its project and begin stay."""
    tx.execute(
        f"INSERT INTO session ({_COLUMNS}) VALUES (?, ?, ?, ?, NULL, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT (agent, id) DO UPDATE SET ended_at = NULL, process = excluded.process, "
        "process_started = excluded.process_started, attended = excluded.attended",
        (
            session.agent,
            session.id,
            session.project,
            session.started_at,
            session.process,
            session.process_started,
            session.attended,
        ),
    )


def end_session(tx: Transaction, agent: str, session: str, now: float) -> None:
    tx.execute("UPDATE session SET ended_at = ? WHERE agent = ? AND id = ?", (now, agent, session))


def get_session(reader: Reader, agent: str, session: str) -> Session | None:
    rows = reader.query(f"SELECT {_COLUMNS} FROM session WHERE agent = ? AND id = ?", (agent, session))  # noqa: S608
    return _session(rows[0]) if rows else None


def newest_sessions(reader: Reader, project: str = "", limit: int = 20) -> list[Session]:
    """Sessions of a project (of all without one), newest first."""
    where, given = ("WHERE project = ? ", (project,)) if project else ("", ())
    sql = f"SELECT {_COLUMNS} FROM session {where}ORDER BY started_at DESC LIMIT ?"  # noqa: S608
    return [_session(row) for row in reader.query(sql, (*given, limit))]


def speaking(reader: Reader) -> list[Session]:
    """Sessions whose process we know. Also ended ones: the process may outlive what it calls a session."""
    return [_session(row) for row in reader.query(f"SELECT {_COLUMNS} FROM session WHERE process > 0")]  # noqa: S608


def beginnings(reader: Reader) -> list[str]:
    """When the processes that ever spoke for a session began, as the system writes it."""
    rows = reader.query("SELECT DISTINCT process_started FROM session WHERE process_started != ''")
    return [str(row[0]) for row in rows]


def forget_processes(tx: Transaction, gone: list[Session]) -> None:
    """These processes have ended; their numbers may come back as something else."""
    tx.execute_many(
        "UPDATE session SET process = 0 WHERE agent = ? AND id = ? AND process = ?",
        [(session.agent, session.id, session.process) for session in gone],
    )


def _session(row: tuple[object, ...]) -> Session:
    names = _COLUMNS.split(", ")
    fields = dict(zip(names, row, strict=True)) | {"attended": bool(row[-1])}
    return msgspec.convert(fields, Session)
