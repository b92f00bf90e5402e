"""Where state lives. `Store` is the contract every backend keeps; the modules beside it hold the SQL by noun.

One thread writes, in groups; work handed to `write` runs there and has happened when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Reader(Protocol):
    """Anything rows can be read from: a store (what is committed) or a transaction (what it did so far)."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]: ...

    def writes_to(self, table: str) -> int | None:
        """How often a table was written to, for caches; None where others may write as well."""
        ...


class Transaction(Reader, Protocol):
    """One group of writes. `scratch` lives as long as the group and is undone with it.

    `durable`: the commit waits until the disk has it, and with it everything committed before.
    """

    scratch: dict[str, Any]
    durable: bool

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement; the number of rows it changed."""
        ...

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each row."""
        ...

    def insert(self, into: str, rows: Sequence[Sequence[Any]], then: str = "") -> None:
        """Put rows in, many with one statement: `into` is its text up to VALUES, `then` what follows them.

        They are there for whatever the group does next. What is wrong with one may come up only then.
        """
        ...

    def before_commit(self, work: Callable[[Transaction], None]) -> None:
        """Have more written once every work of the group is done. What it raises fails the whole group."""
        ...

    def after(self, callback: Callable[[], None]) -> None:
        """Call back once the group is committed, before anyone waiting hears of it. Must not raise."""
        ...


class Offer(NamedTuple):
    """Work for who must not wait; `tell` hears that it is committed, or what went wrong.

    `alone`: it makes one statement, not counting `before_commit`, and reads nothing it wrote.
    """

    work: Callable[[Transaction], Any]
    tell: Callable[[BaseException | None], None]
    alone: bool = False


class Store(Reader, Protocol):
    """A transactional store with a single writer."""

    def submit(self, work: Callable[[Transaction], T], *, durable: bool = False) -> Future[T]:
        """Queue work for the next group; the future resolves once it is committed.

        `durable` waits for the disk as well. Work may run again when a neighbour in its group fails, so it
        must touch nothing but the transaction.
        """
        ...

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, alone: bool = False) -> T:
        """Submit and wait. `alone`: the work makes one statement and reads nothing it wrote."""
        ...

    def offer(self, offers: Sequence[Offer]) -> None:
        """Works that make one group: done at once where nobody else is writing, else with the next group.

        Whoever offers them is told here, or on the writer's thread.
        """
        ...

    def close(self) -> None:
        """Finish what is queued and let go."""
        ...
