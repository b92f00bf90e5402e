"""What was committed gets into the database itself while others write, and nothing is lost on the way."""

import contextlib
import sqlite3
import threading

import pytest

from checkrein.settings.sources import state_dir
from checkrein.store import folding
from checkrein.store.changes import set_number
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE


@pytest.fixture
def small(monkeypatch):
    """Few pages are many."""
    monkeypatch.setattr(folding, "PAGES", 60)


@pytest.fixture
def store(home):
    made = SqliteStore.open(state_dir())
    yield made
    made.close()


def fill(store, count, name="n"):
    for number in range(count):
        store.write(lambda tx, number=number: set_number(tx, f"{name}{number}", number))


def in_the_database(store):
    """What the database holds without its log."""
    copy = store.folder / "copy.db"
    copy.write_bytes(store.path.read_bytes())
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            # Not even the tables are there yet.
            return 0
        return connection.execute("SELECT count(*) FROM change WHERE what LIKE 'n%'").fetchone()[0]


def test_many_pages_are_brought_over_and_few_are_not(store, small):
    fill(store, 5)
    assert store._folding._thread is None and in_the_database(store) == 0
    fill(store, 100)
    store._folding.close()
    assert in_the_database(store) > 5


def test_no_commit_does_it_where_nobody_does(store):
    """Left to SQLite it would have happened within so many."""
    fill(store, 1_300)
    assert store._folding._thread is None and in_the_database(store) == 0


def test_whoever_writes_meanwhile_loses_nothing(store, small):
    threads = [threading.Thread(target=fill, args=(store, 400, f"n{each}-")) for each in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    store._folding.close()
    assert store.query("SELECT count(*) FROM change WHERE what LIKE 'n%'") == [(1200,)]
    store.close()
    assert in_the_database(store) == 1200


def test_the_log_begins_anew_although_somebody_wrote_meanwhile(store, small, monkeypatch):
    bring_over, passes = folding._bring_over, []

    def crowded(connection):
        passes.append(connection)
        with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as reader:
            if len(passes) == 1:
                # What is written behind somebody's back who still reads cannot be brought over yet.
                reader.execute("BEGIN").execute("SELECT count(*) FROM change").fetchall()
                fill(store, 5, "meanwhile")
            bring_over(connection)

    monkeypatch.setattr(folding, "_bring_over", crowded)
    fill(store, 20)
    store._folding.close()
    fill(store, 1, "later")
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    # All of it would be two pages a commit and more.
    assert 0 < pages < 20


@pytest.mark.invariant(
    "what goes wrong here (a full disk) leaves everything in the log, where all can read it"
)
def test_one_that_fails_harms_no_commit_and_is_tried_again(store, small, monkeypatch):
    tried, connected = [], folding._connected

    def fails(path):
        tried.append(path)
        if len(tried) == 1:
            raise sqlite3.OperationalError("disk I/O error")
        return connected(path)

    monkeypatch.setattr(folding, "_connected", fails)
    fill(store, 30)
    store._folding.close()
    assert in_the_database(store) == 0
    fill(store, 60)
    store._folding.close()
    assert len(tried) >= 2 and in_the_database(store) > 0


@pytest.mark.invariant("the log is on the disk before the database is changed by it")
def test_the_log_is_on_the_disk_before_the_database_is_changed_by_it(store, small, monkeypatch):
    modes, bring_over = [], folding._bring_over

    def looked_at(connection):
        modes.append(connection.execute("PRAGMA synchronous").fetchone())
        bring_over(connection)

    monkeypatch.setattr(folding, "_bring_over", looked_at)
    fill(store, 60)
    store.close()
    full = (2,)
    assert modes and set(modes) == {full}


def test_a_system_without_room_for_a_thread_takes_no_commit_back(store, small, monkeypatch):
    def no_room(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    fill(store, 50)
    assert store.query("SELECT count(*) FROM change WHERE what LIKE 'n%'") == [(50,)]


def test_a_store_that_closes_waits_for_it(home, small, monkeypatch):
    begun, go_on, bring_over = threading.Event(), threading.Event(), folding._bring_over
    ends, is_closing = [], threading.Event()

    def slow(connection):
        begun.set()
        go_on.wait(PATIENCE)
        bring_over(connection)
        ends.append("brought over")

    def close():
        is_closing.set()
        store.close()
        ends.append("closed")

    monkeypatch.setattr(folding, "_bring_over", slow)
    store = SqliteStore.open(state_dir())
    fill(store, 40)
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=close)
    closing.start()
    assert is_closing.wait(PATIENCE)
    go_on.set()
    closing.join()
    assert ends[-1] == "closed" and "brought over" in ends
    assert in_the_database(store) == 40
