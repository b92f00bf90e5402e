"""The newest records as they were written: who follows the ledger need not read them back from the store."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from checkrein.store import Row
from checkrein.store.records import COLUMNS

# So much waits for who follows; whoever is further behind reads the store.
MOST_ROWS, MOST_CHARACTERS = 4_096, 4 << 20
_BODY = COLUMNS.split(", ").index("body")


class Recent:
    """Rows in the order they were committed, for one follower."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._size = 0
        self._lock = threading.Lock()

    def add(self, rows: Sequence[Row]) -> None:
        """What was just committed."""
        with self._lock:
            self._rows += rows
            self._size += sum(len(row[_BODY]) for row in rows)
            if len(self._rows) > MOST_ROWS or self._size > MOST_CHARACTERS:
                self._rows, self._size = [], 0

    def take(self, seq: int) -> list[Row] | None:
        """Every record after `seq`, once; none of them where not all are here."""
        with self._lock:
            rows, self._rows, self._size = self._rows, [], 0
        # INVARIANT: there is no gap between what was followed before and what is here.
        if not rows or rows[0][0] > seq + 1:
            return None
        return rows[seq + 1 - rows[0][0] :]
