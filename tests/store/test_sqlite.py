import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from checkrein.errors import StoreBusyError, StoreError, StoreFullError, StoreSchemaError
from checkrein.settings.sources import state_dir
from checkrein.store import Offer, lookup, records
from checkrein.store.phases import clear_phase, set_phase
from checkrein.store.sqlite import APPLICATION_ID, FILE, SqliteStore, migrations
from patience import PATIENCE, until


def test_the_folder_and_files_are_the_owner_s_alone():
    store = SqliteStore.open(state_dir())
    assert state_dir().stat().st_mode & 0o777 == 0o700
    for path in state_dir().iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    store.close()


HOLDER = """
import sys
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
store = SqliteStore.open(state_dir())
print("ok", flush=True)
sys.stdin.read()
"""


def test_one_process_writes_and_the_next_is_told_who():
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"ok\n"
    try:
        with pytest.raises(StoreBusyError, match=str(holder.pid)):
            SqliteStore.open(state_dir(), wait=0.1)
        reader = SqliteStore.open(state_dir(), read_only=True)
        assert records.head(reader) is None
        reader.close()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    SqliteStore.open(state_dir(), wait=PATIENCE).close()


def test_reading_works_after_the_writer_is_gone():
    SqliteStore.open(state_dir()).close()
    reader = SqliteStore.open(state_dir(), read_only=True)
    assert records.head(reader) is None
    with pytest.raises(StoreError, match="reading only"):
        reader.write(lambda tx: None)
    with pytest.raises(StoreError, match="readonly"):
        reader.query("DELETE FROM rule")
    reader.close()


def test_a_store_of_every_earlier_version_keeps_what_it_has():
    steps = migrations()
    for version in range(1, len(steps)):
        path = state_dir() / FILE
        state_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
        with sqlite3.connect(path) as database:
            database.executescript("".join(steps[:version]))
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {version}")
            database.execute("INSERT INTO record VALUES (1, 1.0, 'decided', 'e1', '{}', 'h')")
            database.executemany("INSERT INTO lookup VALUES (?, ?)", [("tool:b", "e1"), ("tool:a", "e1")])
        database.close()
        store = SqliteStore.open(state_dir())
        assert records.head(store) == (1, "h")
        assert [lookup.find(store, [f"tool:{name}"], "", "", 9) for name in "abc"] == [["e1"], ["e1"], []]
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store.write(lambda tx: tx.execute("DELETE FROM lookup"))
        store.close()
        for each in state_dir().glob(f"{FILE}*"):
            each.unlink()


def test_a_newer_or_foreign_store_is_not_touched():
    SqliteStore.open(state_dir()).close()
    path = state_dir() / FILE
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(StoreSchemaError, match="newer"):
            SqliteStore.open(state_dir(), read_only=read_only)
    assert path.read_bytes() == before
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    with pytest.raises(StoreSchemaError, match="not a Checkrein store"):
        SqliteStore.open(state_dir())


def test_a_file_that_is_no_database_is_an_error_not_a_fresh_start():
    state_dir().mkdir(parents=True)
    (state_dir() / FILE).write_bytes(b"precious evidence " * 100)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore.open(state_dir())
    assert (state_dir() / FILE).read_bytes().startswith(b"precious")


def test_an_older_schema_is_brought_up_to_date_whole_or_not_at_all(monkeypatch):
    SqliteStore.open(state_dir()).close()
    steps = [*migrations(), "CREATE TABLE extra (x); CREATE TABLE broken (;"]
    monkeypatch.setattr("checkrein.store.sqlite.migrations", lambda: steps)
    with pytest.raises(StoreError):
        SqliteStore.open(state_dir())
    with pytest.raises(StoreSchemaError, match="older"):
        SqliteStore.open(state_dir(), read_only=True)
    steps[-1] = "CREATE TABLE extra (x);"
    store = SqliteStore.open(state_dir())
    assert store.query("SELECT * FROM extra") == []
    store.close()


def test_another_user_s_folder_is_refused(monkeypatch):
    state_dir().mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StoreError, match="another user"):
        SqliteStore.open(state_dir())


def test_a_folder_that_cannot_be_made_is_explained(home):
    (home / "state").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="state"):
        SqliteStore.open(state_dir())


@pytest.mark.invariant("a durable work is on the disk before anyone hears of it")
def test_durable_work_is_synced_and_the_rest_is_not(monkeypatch):
    store = SqliteStore.open(state_dir())
    modes = []

    def note(tx):
        modes.append(tx.query("PRAGMA synchronous")[0][0])

    store.write(note)
    store.write(note, durable=True)
    store.write(note)
    assert modes == [1, 2, 1]
    store.close()


def test_a_full_disk_is_named_and_leaves_everything_as_it_was():
    store = SqliteStore.open(state_dir())
    store.write(lambda tx: records.append(tx, (1, 1.0, "decided", "", "{}", "h")))
    pages = store.query("PRAGMA page_count")[0][0]
    store.write(lambda tx: tx.query(f"PRAGMA max_page_count = {pages + 3}"), alone=True)
    big = "x" * 100_000
    for _ in range(3):
        with pytest.raises(StoreFullError, match="full"):
            store.write(lambda tx: records.append(tx, (2, 1.0, "decided", "", big, "h")))
    assert records.head(store) == (1, "h")
    store.write(lambda tx: tx.query("PRAGMA max_page_count = 1000000"), alone=True)
    store.write(lambda tx: records.append(tx, (2, 1.0, "decided", "", big, "h2")))
    assert records.head(store) == (2, "h2")
    store.close()


def is_closed_to_writes(store):
    try:
        store.submit(lambda tx: None)
    except StoreError:
        return True


def test_closing_twice_and_waiting_writers_are_harmless():
    store = SqliteStore.open(state_dir())
    slow = store.submit(lambda tx: until(lambda: is_closed_to_writes(store)))
    store.close()
    assert slow.done()
    store.close()


def test_every_write_to_a_table_is_counted_and_a_failed_one_is_not():
    store = SqliteStore.open(state_dir())
    before = store.writes_to("phase")
    store.write(lambda tx: set_phase(tx, "building", 1.0))
    assert store.writes_to("phase") == before + 1
    store.write(clear_phase)
    store.write(lambda tx: tx.execute_many("UPDATE phase SET name = ? WHERE name = ?", [("a", "b")]))
    assert store.writes_to("phase") == before + 3
    assert store.writes_to("session") == 0

    def fails(tx):
        set_phase(tx, "planning", 1.0)
        raise ValueError

    with pytest.raises(ValueError):
        store.write(fails)
    assert store.writes_to("phase") == before + 3
    store.close()


def test_the_count_moves_with_the_commit_before_anyone_hears_of_it():
    store = SqliteStore.open(state_dir())
    seen = []

    def work(tx):
        set_phase(tx, "building", 1.0)
        # A transaction sees its own writes, so nobody may cache what it says.
        seen.append(tx.writes_to("phase"))
        tx.after(lambda: seen.append(store.writes_to("phase")))

    store.write(work)
    assert seen == [None, 1]
    store.close()


def test_a_reader_beside_the_writer_cannot_tell_so_it_never_caches():
    writer = SqliteStore.open(state_dir())
    reader = SqliteStore.open(state_dir(), read_only=True)
    writer.write(lambda tx: set_phase(tx, "building", 1.0))
    assert reader.writes_to("phase") is None
    reader.close()
    writer.close()


def test_threads_that_come_and_go_leave_no_file_open():
    store = SqliteStore.open(state_dir())
    store.query("SELECT 1 FROM rule")
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        thread = threading.Thread(target=lambda: store.query("SELECT 1 FROM rule"))
        thread.start()
        thread.join()
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= before + 4
    store.close()


@pytest.mark.invariant(
    "who does not want to hear any more (a loop that ended, a future given up) harms no other"
)
def test_who_does_not_want_to_hear_any_more_takes_nobody_along():
    """A loop that ended, a future given up: the works queued beside theirs are still answered."""
    store = SqliteStore.open(state_dir())
    held, go = threading.Event(), threading.Event()

    def slow(_tx):
        held.set()
        go.wait()

    def deaf(_error):
        raise RuntimeError("Event loop is closed")

    def fails(_tx):
        raise ValueError("mine")

    first = threading.Thread(target=store.write, args=(slow,))
    first.start()
    held.wait()
    store.offer([Offer(lambda _tx: None, deaf), Offer(fails, deaf)])
    gone = store.submit(lambda _tx: None)
    assert gone.cancel()
    later = store.submit(lambda _tx: "said")
    go.set()
    assert later.result(PATIENCE) == "said"
    first.join()
    assert "checkrein-writer" in [each.name for each in threading.enumerate()]
    store.close()
