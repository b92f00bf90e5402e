"""What the gateway remembers across a restart: sessions that matter later, and used request states."""

from __future__ import annotations

import msgspec

from checkrein.store import Reader, Transaction


class KeptSession(msgspec.Struct, frozen=True):
    """A session that left a question or is tainted, and who was in it."""

    session: str
    reader: str
    tainted_by: str = ""


def put_session(tx: Transaction, kept: KeptSession, now: float) -> None:
    """Keep a session, or what it has read since."""
    tx.execute(
        "INSERT INTO gateway_session (session, reader, tainted_by, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (session) DO UPDATE SET tainted_by = excluded.tainted_by, at = excluded.at",
        (kept.session, kept.reader, kept.tainted_by, now),
    )


def drop_session(tx: Transaction, session: str) -> None:
    """Forget a session that is over."""
    tx.execute("DELETE FROM gateway_session WHERE session = ?", (session,))


def drop_old_sessions(tx: Transaction, before: float) -> None:
    """Forget sessions nobody came back to."""
    tx.execute("DELETE FROM gateway_session WHERE at < ?", (before,))


def kept_sessions(reader: Reader) -> list[KeptSession]:
    """Every session that is kept, oldest first."""
    rows = reader.query("SELECT session, reader, tainted_by FROM gateway_session ORDER BY at, session")
    return [KeptSession(*row) for row in rows]


def use_state(tx: Transaction, state: str, expires: float, now: float) -> bool:
    """Note that a request state is used; False when it was used before."""
    tx.execute("DELETE FROM used_state WHERE expires < ?", (now,))
    # INVARIANT: a request state works once, also across a restart.
    return bool(
        tx.execute(
            "INSERT INTO used_state (id, expires) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", (state, expires)
        )
    )
