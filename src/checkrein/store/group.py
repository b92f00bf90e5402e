"""What works write through: the transaction a group of them shares, and the one a single statement makes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any

from checkrein.errors import StoreError
from checkrein.store import Row, Transaction

# So many rows go into one statement; few sizes, so that the statements stay prepared.
_SIZES = (64, 16, 4, 2, 1)


class Lost(Exception):  # noqa: N818 - what became of the rows
    """Rows that were put in earlier could not be written; whose they were nobody can tell any more."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Group:
    """The transaction the works of one group share."""

    def __init__(self, connection: sqlite3.Connection, durable: bool = False) -> None:
        self._connection, self.durable = connection, durable
        self._into: tuple[str, str] = ("", "")
        self._rows: list[Sequence[Any]] = []
        self._lost: Lost | None = None
        self.scratch: dict[str, Any] = {}
        self.followers: list[Callable[[], None]] = []
        self._last_works: list[Callable[[Transaction], None]] = []
        self.touched: set[str] = set()
        # How much was written, as far as that is worth knowing.
        self.rows = 0

    def before_commit(self, work: Callable[[Transaction], None]) -> None:
        self._last_works.append(work)

    def finish(self) -> None:
        """Write what belongs to the group as a whole, and every row that is not written yet."""
        for work in self._last_works:
            work(self)
        self.flush()

    def after(self, callback: Callable[[], None]) -> None:
        self.followers.append(callback)

    def insert(self, into: str, rows: Sequence[Sequence[Any]], then: str = "") -> None:
        if self._into != (into, then):
            self.flush()
            self._into = into, then
        self._rows += rows
        if len(self._rows) >= _SIZES[0]:
            self.flush()

    def check(self) -> None:
        # INVARIANT: rows that were lost take the group along, even where the work that met the error goes on.
        if self._lost is not None:
            raise self._lost

    def flush(self) -> None:
        """Write the rows that were put in and are not written yet."""
        self.check()
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        self.rows += len(rows)
        self.touched.add(_table(self._into[0]))
        into, then = _with_the_group(self._into[0]), self._into[1]
        try:
            # Every statement is a moment in which another thread may take over from us.
            start = 0
            for size in _SIZES:
                while len(rows) - start >= size:
                    some = rows[start : start + size]
                    self._connection.execute(_filled(into, then, size, len(some[0])), _flat(some))
                    start += size
        except BaseException as error:
            self._lost = Lost(error)
            raise self._lost from error

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        self.flush()
        self.rows += 1
        self.touched.add(_table(sql))
        return self._connection.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self.flush()
        self.rows += len(rows)
        self.touched.add(_table(sql))
        self._connection.executemany(sql, rows)

    def writes_to(self, table: str) -> int | None:  # noqa: ARG002 - a transaction sees its own writes
        return None

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self.flush()
        return self._connection.execute(sql, parameters).fetchall()


class Single(Group):
    """A transaction of one statement, made once the work is done with it: cheaper to begin and to commit.

    What `before_commit` adds makes it an ordinary transaction.
    """

    def __init__(self, connection: sqlite3.Connection, durable: bool = False) -> None:
        super().__init__(connection, durable)
        self._statements: list[tuple[str, Sequence[Any]]] = []
        self._finishing = False

    def insert(self, into: str, rows: Sequence[Sequence[Any]], then: str = "") -> None:
        if rows:
            self.execute(_filled(into, then, len(rows), len(rows[0])), _flat(rows))

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        if self._statements and not self._finishing:
            raise StoreError("This work makes more than one statement.")
        self._statements.append((sql, parameters))
        self.touched.add(_table(sql))
        return 1

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:  # noqa: ARG002
        raise StoreError("This work makes more than one statement.")

    def finish(self) -> None:
        self._finishing = True
        for work in self._last_works:
            work(self)

    def commit(self) -> None:
        many = len(self._statements) > 1
        if many:
            self._connection.execute("BEGIN IMMEDIATE")
        for statement in self._statements:
            self._connection.execute(*statement)
        if many:
            self._connection.execute("COMMIT")


def _flat(rows: Sequence[Sequence[Any]]) -> Sequence[Any]:
    return rows[0] if len(rows) == 1 else tuple(chain.from_iterable(rows))


@cache
def _filled(into: str, then: str, rows: int, columns: int) -> str:
    """The statement that puts in so many rows."""
    row = f"({', '.join('?' * columns)})"
    return f"{into} VALUES {', '.join([row] * rows)} {then}".rstrip()


@cache
def _with_the_group(into: str) -> str:
    """A row that cannot be written takes its group along: no page is copied to take back less than that."""
    return into.replace("INSERT", "INSERT OR FAIL", 1)


_TABLE = re.compile(r"(?:INTO|UPDATE|FROM)\s+(\w+)", re.I)


@cache
def _table(sql: str) -> str:
    """The table a statement writes to."""
    found = _TABLE.search(sql)
    return found[1] if found else ""
