"""Brings what was committed from SQLite's log into the database itself, beside whoever goes on writing.

The store counts what it wrote and asks for it. Left to SQLite, a commit now and then does all of it, and
whoever waits for that commit waits for the disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

# Pages in the log before they are brought over; should nobody do it, a commit does after so many.
PAGES, LAST_RESORT = 4_000, 64_000
# What a commit touches besides its rows, and how many rows fill a page.
_EVERY_COMMIT, _ROWS_A_PAGE = 3, 3


class Folding:
    """For one store; `turn` is held by whoever writes."""

    def __init__(self, path: Path, turn: threading.Lock) -> None:
        self._path, self._turn = path, turn
        self._written = 0
        self._thread: threading.Thread | None = None

    def wrote(self, rows: int) -> None:
        """So many more are committed; said by whoever has the turn."""
        self._written += _EVERY_COMMIT + rows // _ROWS_A_PAGE
        if self._written >= PAGES and (self._thread is None or not self._thread.is_alive()):
            self._written = 0
            made = threading.Thread(target=self._fold, name="checkrein-folding", daemon=True)
            # No room for a thread now: there is another commit.
            with contextlib.suppress(RuntimeError):
                made.start()
                self._thread = made

    def close(self) -> None:
        """Wait until nothing is brought over any more; nobody has the turn for it meanwhile."""
        if self._thread is not None:
            self._thread.join()

    def _fold(self) -> None:
        # INVARIANT: what goes wrong here (a full disk) leaves everything in the log, where all can read it.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(_connected(self._path)) as connection:
            _bring_over(connection)
            # The little that came meanwhile. Only where nobody writes does the log begin anew, and a log that
            # goes on growing makes whoever waits for the disk wait longer.
            with self._turn:
                _bring_over(connection)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    # INVARIANT: the log is on the disk before the database is changed by it.
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _bring_over(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
