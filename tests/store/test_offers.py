"""Works that share a transaction: whoever is told that theirs is written finds it, whatever went wrong."""

import sqlite3
import threading

import pytest

from checkrein.errors import StoreError, StoreFullError
from checkrein.store import Offer, records
from checkrein.store.changes import change_number, set_number
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE

MANY = 12


class Told(list):
    """Offers by number, and what each was told."""

    def offers(self, works, *, alone=False):
        self[:] = [[] for _ in works]
        return [Offer(work, self[number].append, alone) for number, work in enumerate(works)]

    def agrees_with(self, store):
        """Whether exactly those that were told so are there, and everyone was told once."""
        assert [len(each) for each in self] == [1] * len(self)
        written = [change_number(store, f"n{number}") == 1 for number in range(len(self))]
        assert written == [each == [None] for each in self]
        return sum(written)


class Faulty:
    """The writer's connection, on a system where some statements fail."""

    def __init__(self, connection, statement, *, error=None, after=False):
        self._connection, self._statement, self._after = connection, statement, after
        self.error = error or sqlite3.OperationalError("disk I/O error")

    def execute(self, sql, *parameters):
        fails = sql.startswith(self._statement) and self.error is not None
        if fails and not self._after:
            raise self.error
        found = self._connection.execute(sql, *parameters)
        if fails:
            raise self.error
        return found

    def __getattr__(self, name):
        return getattr(self._connection, name)


def note(number):
    return lambda tx: set_number(tx, f"n{number}", 1)


def notes(count=MANY):
    return [note(number) for number in range(count)]


def refused(error):
    def work(tx):
        set_number(tx, "never", 1)
        raise error

    return work


@pytest.fixture
def told():
    return Told()


def test_all_are_written_and_told(store, told):
    store.offer(told.offers(notes()))
    assert told.agrees_with(store) == MANY


@pytest.mark.parametrize("error", [ValueError("mine"), StoreError("mine"), KeyError(), SystemExit()])
@pytest.mark.parametrize("at", [[0], [MANY - 1], [3, 4, 9]])
def test_one_that_raises_is_told_so_and_nobody_else(store, told, error, at):
    works = notes()
    for each in at:
        works[each] = refused(error)
    store.offer(told.offers(works))
    assert told.agrees_with(store) == MANY - len(at)
    assert all(told[each] == [error] for each in at)
    assert change_number(store, "never") == 0


def test_a_full_disk_in_the_middle_leaves_none_and_tells_all(store, told):
    pages = store.query("PRAGMA page_count")[0][0]
    store.write(lambda tx: tx.query(f"PRAGMA max_page_count = {pages + 3}"), alone=True)
    works = notes()
    works[5] = lambda tx: records.append(tx, (1, 1.0, "decided", "", "x" * 200_000, "h"))
    store.offer(told.offers(works))
    assert told.agrees_with(store) == 0
    assert all(isinstance(each[0], StoreFullError) for each in told)
    store.write(lambda tx: tx.query("PRAGMA max_page_count = 1000000"), alone=True)
    store.offer(told.offers(notes()))
    assert told.agrees_with(store) == MANY


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "INSERT INTO change", "PRAGMA synchronous"])
def test_what_the_disk_refuses_is_told_and_is_not_there(store, told, statement, alone):
    store.write(lambda _tx: None, durable=True)
    whole = store._writer
    store._writer = Faulty(whole, statement)
    count = 1 if alone else MANY
    store.offer(told.offers(notes(count), alone=alone))
    # One statement by itself begins and commits nothing.
    untouched = alone and statement in ("BEGIN", "COMMIT")
    assert told.agrees_with(store) == (count if untouched else 0)
    store._writer = whole
    store.offer(told.offers(notes(count)))
    assert told.agrees_with(store) == count


def test_works_that_fail_while_nothing_can_be_taken_back_are_all_told(store, told):
    whole = store._writer
    store._writer = Faulty(whole, "ROLLBACK")
    works = notes()
    works[3] = refused(ValueError("mine"))
    store.offer(told.offers(works))
    assert [each[0] for each in told if each[0] is None] == []
    store._writer = whole
    store.offer(told.offers(notes()))
    assert told.agrees_with(store) == MANY


@pytest.mark.invariant("whatever it is, all hear of it and the writer lives")
@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_whatever_goes_wrong_in_the_writer_all_hear_of_it_and_it_lives(store, statement):
    whole = store._writer
    store._writer = Faulty(whole, statement, error=MemoryError())
    works = [*notes(3), refused(ValueError("mine"))]
    held = store.submit(lambda _tx: None)
    futures = [store.submit(work) for work in works]
    for future in (held, *futures):
        future.exception(PATIENCE)
    assert futures[3].exception() is not None
    store._writer = whole
    assert store.submit(note(9)).result(PATIENCE) is None
    assert change_number(store, "n9") == 1


@pytest.mark.invariant("nothing is told as written that went into a transaction somebody left open")
def test_one_statement_left_within_an_open_transaction_is_not_told_as_written(store, told):
    """However it came to be open: what is not committed is on no record."""
    store.write(lambda _tx: None)

    def leaves_it_open(tx):
        tx.query("BEGIN IMMEDIATE")
        tx.query("INSERT INTO change (what, number) VALUES ('left', 1)")

    store.write(leaves_it_open, alone=True)
    store.offer(told.offers(notes(1), alone=True))
    assert told.agrees_with(store) == 1
    assert change_number(store, "left") == 0


def test_who_does_not_want_to_hear_takes_nobody_along(store):
    heard = []

    def deaf(_error):
        raise RuntimeError("nobody is here")

    offers = [Offer(note(0), heard.append), Offer(note(1), deaf), Offer(note(2), heard.append)]
    store.offer(offers)
    assert heard == [None, None] and change_number(store, "n2") == 1
    store.offer([Offer(note(3), deaf, alone=True)])
    assert change_number(store, "n3") == 1
    store.offer(offers)
    assert heard == [None] * 4


def test_what_waits_for_the_writer_is_told_what_became_of_it(store, told):
    held, go_on = threading.Event(), threading.Event()

    def slow(_tx):
        held.set()
        go_on.wait(PATIENCE)

    thread = threading.Thread(target=store.write, args=(slow,))
    thread.start()
    held.wait(PATIENCE)
    works = notes()
    works[2] = refused(ValueError("mine"))
    store.offer(told.offers(works))
    assert told == [[] for _ in works], "nobody hears of what is not written"
    go_on.set()
    thread.join()
    store.write(lambda _tx: None)
    assert told.agrees_with(store) == MANY - 1


def test_a_store_that_is_closed_takes_nothing(store, told):
    store.close()
    with pytest.raises(StoreError):
        store.offer(told.offers(notes()))
    assert told == [[] for _ in range(MANY)]


def test_they_are_there_for_another_process_at_once(store, told):
    store.offer(told.offers(notes()))
    reader = SqliteStore.open(store.folder, read_only=True)
    assert told.agrees_with(reader) == MANY
    reader.close()
