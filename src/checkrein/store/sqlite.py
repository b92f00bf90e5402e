"""The SQLite backend: WAL, one writer thread, group commit, a file lock so that only one process writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from checkrein.errors import StoreBusyError, StoreError, StoreFullError, StoreSchemaError
from checkrein.store import Row, Transaction

T = TypeVar("T")
APPLICATION_ID = 0x43484B52
FILE = "checkrein.db"
LOCK = "store.lock"
GROUP = 256
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)


class _Work:
    """Something queued: what to do, whether it must reach the disk, and who waits for it."""

    __slots__ = ("do", "durable", "future")

    def __init__(self, do: Callable[[Transaction], Any], durable: bool) -> None:
        self.do, self.durable = do, durable
        self.future: Future[Any] = Future()


class _Group:
    """The transaction the works of one group share."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.scratch: dict[str, Any] = {}
        self.followers: list[Callable[[], None]] = []

    def after(self, callback: Callable[[], None]) -> None:
        self.followers.append(callback)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()


class SqliteStore:
    """A store in one folder. Open it with `SqliteStore.open`; `read_only` needs no lock and cannot write."""

    def __init__(self, folder: Path, lock: int | None) -> None:
        self.folder, self.path = folder, folder / FILE
        self._lock = lock
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._closed = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writer: sqlite3.Connection | None = None

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, wait: float = 5.0) -> SqliteStore:
        """The store in `folder`, made on first use; at most one process has it open for writing."""
        if not read_only:
            _private_folder(folder)
        store = cls(folder, None if read_only else _take_lock(folder / LOCK, wait))
        try:
            with _explained(store.path):
                if read_only:
                    check_schema(store._reader(), store.path, writable=False)
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
        self._writer.execute("PRAGMA wal_autocheckpoint = 4000")
        check_schema(self._writer, self.path, writable=True)
        self._thread = threading.Thread(target=self._run, name="checkrein-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Transaction], T], *, durable: bool = False) -> Future[T]:
        if self._thread is None:
            raise StoreError("This store was opened for reading only.")
        queued = _Work(work, durable)
        with self._closed:
            if self._writer is None:
                raise StoreError("The store is closed.")
            self._queue.put(queued)
        return queued.future

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False) -> T:
        return self.submit(work, durable=durable).result()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with _explained(self.path):
            return self._reader().execute(sql, parameters).fetchall()

    def close(self) -> None:
        with self._closed:
            writer, self._writer = self._writer, None
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        if writer is not None:
            with contextlib.suppress(sqlite3.Error):
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.close()
        for reader in self._readers:
            reader.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _reader(self) -> sqlite3.Connection:
        """This thread's own read connection: it sees what is committed and can change nothing."""
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            reader = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0
            )
            self._local.reader = reader
            self._readers.append(reader)
        return reader

    def _run(self) -> None:
        """Take what is queued, commit it as one group, tell everyone; until closed."""
        writer = self._writer
        assert writer is not None  # noqa: S101 - set before the thread starts
        last = False
        while not last:
            group: list[_Work] = []
            item = self._queue.get()
            while item is not None:
                group.append(item)
                if len(group) >= GROUP or self._queue.empty():
                    break
                item = self._queue.get()
            last = item is None
            while group:
                group = _commit(writer, group, self.path)


def _commit(writer: sqlite3.Connection, group: list[_Work], path: Path) -> list[_Work]:
    """Commit the group and resolve its futures; if one work fails alone, the others are returned to rerun."""
    transaction = _Group(writer)
    results: list[Any] = []
    try:
        with _explained(path):
            # INVARIANT: a durable work is on the disk before anyone hears of it.
            writer.execute(f"PRAGMA synchronous = {'FULL' if any(w.durable for w in group) else 'NORMAL'}")
            writer.execute("BEGIN IMMEDIATE")
            for work in group:
                try:
                    results.append(work.do(transaction))
                except sqlite3.OperationalError:
                    raise
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever handed the work in
                    writer.execute("ROLLBACK")
                    work.future.set_exception(error)
                    return [other for other in group if other is not work]
            writer.execute("COMMIT")
    except StoreError as error:
        with contextlib.suppress(sqlite3.Error):
            if writer.in_transaction:
                writer.execute("ROLLBACK")
        for work in group:
            work.future.set_exception(error)
        return []
    for follower in transaction.followers:
        follower()
    for work, result in zip(group, results, strict=True):
        work.future.set_result(result)
    return []


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's and the system's errors in words a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in _FULL:
            raise StoreFullError(
                f"The disk that holds {path} is full; nothing was written.",
                remedy="Free some space; calls are refused until then.",
            ) from error
        raise StoreError(f"{path}: {error}.", remedy="`checkrein audit verify` checks the store.") from error
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror}.", remedy="Check the folder's owner and space."
        ) from error


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
    for number, script in enumerate(steps[version:], start=version + 1):
        # The pragma is part of the transaction: a migration happens whole or not at all.
        connection.executescript(
            f"BEGIN IMMEDIATE; {script} PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {number}; COMMIT;"
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
