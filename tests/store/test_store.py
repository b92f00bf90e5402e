"""What every backend promises about writing: groups, failures, followers, threads."""

import threading

import pytest

from checkrein.errors import StoreError
from checkrein.store import records, rules
from patience import PATIENCE


def record(seq, kind="decided", entry=""):
    return (seq, float(seq), kind, entry, "{}", f"hash-{seq}")


def append(store, *rows):
    store.write(lambda tx: [records.append(tx, row) for row in rows])


def test_what_was_written_is_read_by_everyone(store):
    store.write(lambda tx: rules.add_rule(tx, "r1", {"action": "ask", "tool": "x"}, 5.0))
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(rules.all_rules(store)))
    thread.start()
    thread.join()
    assert [each.id for each in seen] == ["r1"]


def test_work_that_fails_leaves_nothing_and_harms_no_neighbour(store):
    gate = threading.Event()

    def fails(tx):
        rules.add_rule(tx, "bad", {"action": "ask"}, 1.0)
        raise ValueError("no")

    hold = store.submit(lambda tx: gate.wait(PATIENCE))
    futures = [
        store.submit(lambda tx, n=n: rules.add_rule(tx, f"good{n}", {"action": "ask"}, 1.0)) for n in range(3)
    ]
    bad = store.submit(fails)
    futures.append(store.submit(lambda tx: rules.add_rule(tx, "good3", {"action": "ask"}, 1.0)))
    gate.set()
    for future in [hold, *futures]:
        future.result(PATIENCE)
    with pytest.raises(ValueError, match="no"):
        bad.result(PATIENCE)
    assert [each.id for each in rules.all_rules(store)] == ["good0", "good1", "good2", "good3"]


def test_a_broken_constraint_is_the_worker_s_own_trouble(store):
    append(store, record(1))
    gate = threading.Event()
    hold = store.submit(lambda tx: gate.wait(PATIENCE))
    bad = store.submit(lambda tx: records.append(tx, record(1)))
    good = store.submit(lambda tx: records.append(tx, record(2)))
    gate.set()
    hold.result(PATIENCE)
    good.result(PATIENCE)
    with pytest.raises(Exception, match="UNIQUE"):
        bad.result(PATIENCE)
    assert records.head(store) == (2, "hash-2")


def test_followers_run_once_after_the_commit_and_not_after_a_rollback(store):
    seen = []

    def works(tx):
        tx.after(lambda: seen.append(records.head(store)))
        records.append(tx, record(1))

    def fails(tx):
        tx.after(lambda: seen.append("never"))
        raise ValueError

    store.write(works)
    assert seen == [(1, "hash-1")]
    with pytest.raises(ValueError):
        store.write(fails)
    assert seen == [(1, "hash-1")]


def test_scratch_is_undone_with_its_group(store):
    def fails(tx):
        tx.scratch["x"] = 1
        raise ValueError

    with pytest.raises(ValueError):
        store.write(fails)
    assert store.write(lambda tx: dict(tx.scratch)) == {}


def test_many_writers_at_once_are_all_served(store):
    def write(start):
        for seq in range(start, 200, 4):
            append(store, record(seq + 1))

    threads = [threading.Thread(target=write, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(records.after(store, 0))) == 200


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.write(lambda tx: None)


def test_a_slow_reader_does_not_hold_up_writing(store):
    append(store, *(record(seq) for seq in range(1, 3000)))
    reading = records.after(store, 0)
    next(reading)
    append(store, record(3000))
    assert len(list(reading)) == 2999


def test_a_busy_writer_does_not_starve_another(store):
    """One thread writes without a pause; whoever else wants to write gets their turn all the same."""
    stop = threading.Event()

    def hog():
        seq = 1_000_000
        while not stop.is_set():
            seq += 1
            append(store, record(seq))

    thread = threading.Thread(target=hog)
    thread.start()
    try:
        for seq in range(1, 101):
            store.submit(lambda tx, seq=seq: records.append(tx, record(seq))).result(PATIENCE)
            append(store, record(seq + 1_000))
    finally:
        stop.set()
        thread.join()
    assert len([row for row in records.after(store, 0) if row[0] <= 2_000]) == 200


@pytest.mark.invariant("what follows a commit never takes it back, nor the writer with it")
def test_what_follows_a_commit_never_takes_it_back_nor_the_writer_with_it(store):
    def works(tx):
        tx.after(lambda: 1 / 0)
        records.append(tx, record(1))

    store.submit(works).result(PATIENCE)
    assert records.head(store) == (1, "hash-1")
    assert store.submit(lambda tx: "still here").result(PATIENCE) == "still here"
    store.write(lambda tx: tx.after(lambda: 1 / 0))
