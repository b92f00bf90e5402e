"""The SQLite backend: WAL, one writer thread, group commit, a file lock so that only one process writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from checkrein.errors import StoreBusyError, StoreError, StoreFullError, StoreSchemaError
from checkrein.store import Offer, Row, Transaction
from checkrein.store.folding import LAST_RESORT, Folding
from checkrein.store.group import Group, Lost, Single

T = TypeVar("T")
APPLICATION_ID = 0x43484B52
FILE = "checkrein.db"
LOCK = "store.lock"
GROUP = 256
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)


class _Work(Generic[T]):
    """Something to do in a transaction, and what came of it; `future` is for those who do not wait here."""

    __slots__ = ("alone", "do", "durable", "error", "future", "result", "tell")

    def __init__(
        self,
        do: Callable[[Transaction], T],
        durable: bool,
        future: Future[T] | None = None,
        alone: bool = False,
        tell: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        self.do, self.durable, self.future, self.alone, self.tell = do, durable, future, alone, tell
        self.result: T | None = None
        self.error: BaseException | None = None

    def succeed(self, result: T) -> None:
        self.result = result
        if self.future:
            self.future.set_result(result)
        elif self.tell:
            self.tell(None)

    def fail(self, error: BaseException) -> None:
        self.error = error
        if self.future:
            self.future.set_exception(error)
        elif self.tell:
            self.tell(error)


class _Reading:
    """One thread's read connection; it ends with its thread: threads that come and go leave no file open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # Held while its thread reads: SQLite crashes if a connection is closed under a running statement.
        self.connection, self.reading = connection, threading.Lock()

    def __del__(self) -> None:
        self.connection.close()


class SqliteStore:
    """A store in one folder. Open it with `SqliteStore.open`; `read_only` needs no lock and cannot write."""

    def __init__(self, folder: Path, lock: int | None) -> None:
        self.folder, self.path = folder, folder / FILE
        self._lock = lock
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reading] = weakref.WeakSet()
        self._opening = threading.Lock()
        self._queue: deque[_Work[Any]] = deque()
        self._wake, self._ending = threading.Event(), False
        self._closing = threading.Lock()
        # Whoever holds this is the one writer at this moment.
        self._turn = threading.Lock()
        self._folding = Folding(self.path, self._turn)
        self._durable = True
        self._thread: threading.Thread | None = None
        self._writer: sqlite3.Connection | None = None
        self._writes: dict[str, int] = {}

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, wait: float = 5.0) -> SqliteStore:
        """The store in `folder`, made on first use; at most one process has it open for writing."""
        if not read_only:
            _private_folder(folder)
        store = cls(folder, None if read_only else _take_lock(folder / LOCK, wait))
        try:
            with _explained(store.path):
                if read_only:
                    check_schema(store._reader().connection, store.path, writable=False)
                else:
                    store._start()
        except BaseException:
            store.close()
            raise
        return store

    def _start(self) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        os.close(descriptor)
        self._writer = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA foreign_keys = ON")
        self._writer.execute("PRAGMA synchronous = FULL")
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {LAST_RESORT}")
        check_schema(self._writer, self.path, writable=True)
        self._thread = threading.Thread(target=self._run, name="checkrein-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Transaction], T], *, durable: bool = False) -> Future[T]:
        future: Future[T] = Future()
        with self._closing:
            self._check_open()
            self._queue.append(_Work(work, durable, future))
        self._wake.set()
        return future

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, alone: bool = False) -> T:
        # Nobody else is writing: commit right here and save the way to the writer thread and back.
        if self._turn.acquire(blocking=False):
            try:
                self._check_open()
                own = _Work(work, durable, alone=alone)
                waiting = self._queued()
                if alone and not waiting:
                    self._commit_single(own)
                else:
                    self._commit_all([*waiting, own])
                if own.error:
                    raise own.error
                return cast("T", own.result)
            finally:
                self._turn.release()
        return self.submit(work, durable=durable).result()

    def offer(self, offers: Sequence[Offer]) -> None:
        group = [_Work(work, False, None, alone, tell) for work, tell, alone in offers]
        if not self._queue and self._turn.acquire(blocking=False):
            try:
                self._check_open()
                if len(group) == 1 and group[0].alone:
                    self._commit_single(group[0])
                else:
                    self._commit_all(group)
            finally:
                self._turn.release()
            return
        with self._closing:
            self._check_open()
            self._queue.extend(group)
        self._wake.set()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        reader = self._reader()
        with _explained(self.path), reader.reading:
            return reader.connection.execute(sql, parameters).fetchall()

    def writes_to(self, table: str) -> int | None:
        return None if self._lock is None else self._writes.get(table, 0)

    def close(self) -> None:
        with self._closing:
            open_thread, self._thread = self._thread, None
        if open_thread is not None:
            self._ending = True
            self._wake.set()
            open_thread.join()
            self._folding.close()
        with self._turn:
            writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(sqlite3.Error):
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.close()
        with self._opening:
            # INVARIANT: a read under way ends before its connection is closed.
            for each in self._readers:
                with each.reading:
                    each.connection.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _reader(self) -> _Reading:
        """This thread's own read connection: it sees what is committed and can change nothing."""
        reading: _Reading | None = getattr(self._local, "reading", None)
        if reading is None:
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            reading = _Reading(
                sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0)
            )
            self._local.reading = reading
            with self._opening:
                self._readers.add(reading)
        return reading

    def _check_open(self) -> None:
        if self._thread is None:
            raise StoreError("This store is closed, or was opened for reading only.")

    def _queued(self) -> list[_Work[Any]]:
        """What waits now, at most a group; only whoever has the turn takes it, so nobody is passed over."""
        return [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]

    def _run(self) -> None:
        """Commit what is queued, group by group, whenever something is; until closed."""
        while not self._ending or self._queue:
            self._wake.wait()
            self._wake.clear()
            with self._turn:
                while group := self._queued():
                    self._commit_all(group)

    def _commit_all(self, group: list[_Work[Any]]) -> None:
        while group:
            group = self._commit(group)

    def _commit_single(self, work: _Work[Any]) -> None:
        """Commit one statement; the work's own mistakes leave nothing behind."""
        writer = self._writer
        assert writer is not None  # noqa: S101 - open stores have one
        transaction = Single(writer, work.durable)
        try:
            self._prepare(writer, work.durable)
            result = work.do(transaction)
            transaction.finish()
            transaction.commit()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever handed the work in
            _roll_back(writer)
            _tell(work.fail, _explanation(self.path, error) if isinstance(error, sqlite3.Error) else error)
            return
        self._committed(transaction)
        _tell(work.succeed, result)

    def _committed(self, transaction: Group) -> None:
        self._folding.wrote(transaction.rows)
        for table in transaction.touched:
            self._writes[table] = self._writes.get(table, 0) + 1
        for follower in transaction.followers:
            # INVARIANT: what follows a commit never takes it back, nor the writer with it.
            with contextlib.suppress(Exception):
                follower()

    def _commit(self, group: list[_Work[Any]]) -> list[_Work[Any]]:
        """Commit the group and tell everyone; if one work fails alone, the others come back to rerun."""
        writer = self._writer
        assert writer is not None  # noqa: S101 - open stores have one
        durable = any(work.durable for work in group)
        transaction = Group(writer, durable)
        results: list[Any] = []
        try:
            with _explained(self.path):
                self._prepare(writer, durable)
                writer.execute("BEGIN IMMEDIATE")
                for work in group:
                    try:
                        results.append(work.do(transaction))
                    except sqlite3.OperationalError:
                        raise
                    except BaseException as error:  # noqa: BLE001 - it belongs to whoever handed the work in
                        transaction.check()
                        writer.execute("ROLLBACK")
                        _tell(work.fail, error)
                        return [other for other in group if other is not work]
                transaction.finish()
                writer.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - INVARIANT: whatever it is, all hear of it and the writer lives
            _roll_back(writer)
            self._not_committed(group, error)
            return []
        self._committed(transaction)
        for work, result in zip(group, results, strict=True):
            _tell(work.succeed, result)
        return []

    def _not_committed(self, group: list[_Work[Any]], error: Exception) -> None:
        """Tell everyone; where one may be to blame for all, each is tried by itself first."""
        cause = error.cause if isinstance(error, Lost) else error
        if cause is not error and len(group) > 1 and _is_of_one(cause):
            for work in group:
                self._commit([work])
            return
        told = _explanation(self.path, cause) if isinstance(cause, sqlite3.Error) else cause
        for work in group:
            _tell(work.fail, told)

    def _prepare(self, writer: sqlite3.Connection, durable: bool) -> None:
        # INVARIANT: nothing is told as written that went into a transaction somebody left open.
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        # INVARIANT: a durable work is on the disk before anyone hears of it.
        if durable != self._durable:
            writer.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


def _roll_back(writer: sqlite3.Connection) -> None:
    with contextlib.suppress(Exception):
        if writer.in_transaction:
            writer.execute("ROLLBACK")


def _tell(word: Callable[[Any], None], what: Any) -> None:
    """INVARIANT: who does not want to hear any more (a loop that ended, a future given up) harms no other."""
    try:  # noqa: SIM105 - told to each of many: this way costs a fraction
        word(what)
    except Exception:  # noqa: BLE001, S110
        pass


def _is_of_one(error: BaseException) -> bool:
    """Whether it is about a row, and not about the disk or about being stopped."""
    return isinstance(error, Exception) and not isinstance(error, sqlite3.OperationalError)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's and the system's errors in words a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error) from error
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror}.", remedy="Check the folder's owner and space."
        ) from error


def _explanation(path: Path, error: sqlite3.Error) -> StoreError:
    if getattr(error, "sqlite_errorcode", None) in _FULL:
        return StoreFullError(
            f"The disk that holds {path} is full; nothing was written.",
            remedy="Free some space; calls are refused until then.",
        )
    return StoreError(f"{path}: {error}.", remedy="`checkrein audit verify` checks the store.")


def check_schema(connection: sqlite3.Connection, path: Path, *, writable: bool) -> None:
    """Bring the schema up to date, or say why that cannot be done."""
    steps = migrations()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise StoreSchemaError(f"{path} is not a Checkrein store.", remedy="Move it away.")
    if version > len(steps):
        raise StoreSchemaError(
            f"{path} was written by a newer version (schema {version}, this one knows {len(steps)}).",
            remedy="Upgrade Checkrein.",
        )
    if version < len(steps) and not writable:
        raise StoreSchemaError(f"{path} has an older schema.", remedy="Run any writing command once.")
    if version < len(steps):
        # One transaction, the pragmas in it: the schema is brought up to date whole or not at all.
        connection.executescript(
            f"BEGIN IMMEDIATE; {''.join(steps[version:])} PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {len(steps)}; COMMIT;"
        )


def migrations() -> list[str]:
    """The numbered schema files, each with SQLite's own addition."""
    folder = resources.files("checkrein.store") / "schema"
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
    common = [name for name in names if name.count(".") == 1]
    return [
        "".join((folder / each).read_text() for each in names if each.split(".")[0] == name.split(".")[0])
        for name in common
    ]


def _private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise StoreError(f"{folder} belongs to another user.", remedy="Use a folder of your own.")
        folder.chmod(0o700)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}.", remedy="Make it a writable folder.") from error


def is_open_for_writing(folder: Path) -> bool:
    """Whether a process, this one or another, has the store in `folder` open for writing."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _take_lock(path: Path, wait: float) -> int:
    """The writer's lock, held while the descriptor is open; the holder's pid is in the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror}.", remedy="Check the folder's owner and space."
        ) from error
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            holder = os.pread(descriptor, 32, 0).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise StoreBusyError(
                f"Another Checkrein process (pid {holder}) is writing to {path.parent}.", remedy="Try again."
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise StoreError(f"{path}: {error.strerror}.", remedy="Free some space.") from error
