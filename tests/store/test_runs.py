"""Runs and their calls in the store: one holder at a time, one end."""

import msgspec
import pytest

from checkrein.store.runs import (
    CallRow,
    RunRow,
    add_run,
    calls_of,
    claim_run,
    end_run,
    forget_run,
    get_run,
    latest_runs,
    overdue_runs,
    put_call,
    suspend_run,
    unfinished_runs,
)
from checkrein.store.sqlite import SqliteStore


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.open(tmp_path / "store")
    yield made
    made.close()


def row(id="r1", **more):
    given = {"owner": "o", "session": "s", "agent": "a", "project": "p", "profile": "", "language": "python"}
    times = {"made_at": 1.0, "changed_at": 1.0, "expires_at": 9.0}
    return RunRow(id=id, state="running", holder="h1", **given, **times, **more)


def call(number=1, **more):
    given = {"tool": "srv__echo", "argument_hash": "x", "entry": f"e{number}", "line": 1, "at": 1.0}
    return CallRow(run="r1", number=number, state="executing", arguments="sealed", **{**given, **more})


def rested(run):
    return msgspec.structs.replace(run, rests=run.rests + 1, suspended="bytes", calls=3)


def test_a_run_is_what_was_written(store):
    store.write(lambda tx: add_run(tx, row(source="text")))
    assert get_run(store, "r1") == row(source="text") and get_run(store, "r2") is None
    assert [each.id for each in unfinished_runs(store)] == ["r1"]


def test_only_its_holder_puts_a_run_away_and_once(store):
    store.write(lambda tx: add_run(tx, row()))
    foreign = msgspec.structs.replace(rested(row()), holder="h2")
    assert not store.write(lambda tx: suspend_run(tx, foreign))
    assert store.write(lambda tx: suspend_run(tx, rested(row())))
    assert not store.write(lambda tx: suspend_run(tx, rested(row())))
    found = get_run(store, "r1")
    assert (found.state, found.rests, found.suspended, found.calls) == ("waiting", 1, "bytes", 3)


@pytest.mark.invariant("of all who would go on with a run, one does")
def test_of_all_who_claim_a_run_one_gets_it(store):
    store.write(lambda tx: add_run(tx, row()))
    store.write(lambda tx: suspend_run(tx, rested(row())))
    seen = get_run(store, "r1")
    got = [store.write(lambda tx, by=by: claim_run(tx, seen, by, 2.0)) for by in ("h2", "h3", "h2")]
    assert got == [True, False, False] and get_run(store, "r1").holder == "h2"


def test_a_run_ends_once_and_only_by_its_holder(store):
    store.write(lambda tx: add_run(tx, row(suspended="bytes")))
    foreign = msgspec.structs.replace(row(), holder="h2")
    assert not store.write(lambda tx: end_run(tx, foreign, "done", "r", 2.0, 3.0))
    assert store.write(lambda tx: end_run(tx, row(), "done", "r", 2.0, 3.0))
    assert not store.write(lambda tx: end_run(tx, row(), "failed", "other", 2.0, 3.0))
    found = get_run(store, "r1")
    assert (found.state, found.result, found.suspended, found.expires_at) == ("done", "r", "", 3.0)
    assert unfinished_runs(store) == []


def test_calls_are_kept_in_order_and_changed_in_place(store):
    store.write(lambda tx: add_run(tx, row()))
    for each in (call(2), call(1)):
        store.write(lambda tx, each=each: put_call(tx, each))
    done = msgspec.structs.replace(call(1), state="done", answer="sealed", arguments="others")
    store.write(lambda tx: put_call(tx, done))
    first, second = calls_of(store, "r1")
    assert (first.state, first.answer, second.state) == ("done", "sealed", "executing")
    # What was asked for is written once.
    assert first.arguments == "sealed"


def test_the_newest_come_first_and_old_ones_go_with_their_calls(store):
    for number in range(3):
        made = msgspec.structs.replace(row(f"r{number}"), made_at=float(number), expires_at=float(number))
        store.write(lambda tx, made=made: add_run(tx, made))
    store.write(lambda tx: put_call(tx, call()))
    assert [each.id for each in latest_runs(store, 2)] == ["r2", "r1"]
    assert [each.id for each in overdue_runs(store, 1.5)] == ["r0", "r1"]
    store.write(lambda tx: forget_run(tx, "r1"))
    assert get_run(store, "r1") is None and calls_of(store, "r1") == []
