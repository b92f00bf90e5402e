"""What works write through: rows are collected, and there for whoever looks; those lost take nobody in."""

import contextlib
import re
from pathlib import Path

import pytest

import checkrein
from checkrein.errors import StoreError, StoreFullError
from checkrein.settings.sources import state_dir
from checkrein.store import Offer, records
from checkrein.store.api_tokens import API_TOKENS
from checkrein.store.changes import change_number, set_number
from checkrein.store.gateway_clients import CLIENTS
from checkrein.store.group import _table
from checkrein.store.sqlite import SqliteStore

INTO = "INSERT INTO change (what, number)"


def record(seq, body="{}"):
    return (seq, float(seq), "decided", f"e{seq}", body, f"hash-{seq}")


def append(*seqs, body="{}"):
    return lambda tx: [records.append(tx, record(seq, body)) for seq in seqs]


def seqs(reader):
    return [row[0] for row in reader.query("SELECT seq FROM record ORDER BY rowid")]


def offered(store, *works):
    """What each work was told."""
    told = [[] for _ in works]
    store.offer([Offer(work, heard.append) for work, heard in zip(works, told, strict=True)])
    assert [len(heard) for heard in told] == [1] * len(works)
    return [heard[0] for heard in told]


@pytest.fixture
def statements(store):
    """What the writer is given to run, from here on."""
    seen = []
    whole = store._writer

    class Watched:
        def execute(self, sql, *parameters):
            seen.append(sql)
            return whole.execute(sql, *parameters)

        def __getattr__(self, name):
            return getattr(whole, name)

    store._writer = Watched()
    yield seen
    store._writer = whole


@pytest.mark.parametrize("count", [1, 3, 4, 5, 63, 64, 65, 150, 300])
def test_rows_of_all_works_are_there_in_order_once(store, count):
    assert offered(store, *(append(seq) for seq in range(1, count + 1))) == [None] * count
    assert seqs(store) == list(range(1, count + 1))
    assert list(records.after(store, 0)) == [record(seq) for seq in range(1, count + 1)]


def test_many_rows_make_few_statements_of_few_kinds(store, statements):
    store.write(append(*range(1000)))
    inserts = [sql for sql in statements if sql.startswith("INSERT")]
    assert len(inserts) <= 1000 // 64 + 10
    for count in range(1, 70):
        store.write(append(*range(count * 1000, count * 1000 + count)))
    assert len({sql for sql in statements if sql.startswith("INSERT")}) == 5


def test_whatever_comes_next_sees_the_rows(store):
    seen = []

    def looks(tx):
        seen.append(seqs(tx))
        records.append(tx, record(2))
        seen.append(tx.execute("INSERT INTO change (what, number) SELECT 'count', count(*) FROM record"))
        records.append(tx, record(3))
        tx.execute_many("UPDATE change SET number = (SELECT count(*) FROM record) + ?", [(0,), (10,)])

    assert offered(store, append(1), looks) == [None, None]
    assert seen == [[1], 1]
    assert change_number(store, "count") == 13


def test_rows_of_two_tables_are_written_in_the_order_they_came(store):
    """A checkpoint belongs to a record, which must be there first."""

    def work(tx):
        for seq in (1, 2):
            records.append(tx, record(seq))
            tx.insert("INSERT INTO checkpoint (seq, body, signature)", [(seq, "{}", "s")])

    store.write(work)
    assert [each[0] for each in records.checkpoints(store)] == [1, 2]


def test_what_follows_the_rows_belongs_to_the_statement(store):
    for _ in range(2):
        store.write(lambda tx: tx.insert(INTO, [("a", 1), ("b", 2)], "ON CONFLICT DO NOTHING"))
    store.write(lambda tx: tx.insert(INTO, [("c", 3)], "ON CONFLICT DO NOTHING"), alone=True)
    assert [change_number(store, name) for name in "abc"] == [1, 2, 3]
    assert store.writes_to("change") == 3


@pytest.mark.parametrize("at", [0, 2, 4])
def test_rows_of_a_work_that_fails_are_not_written_and_those_of_the_others_are(store, at):
    def fails(tx):
        append(98, 99)(tx)
        raise ValueError("mine")

    works = [append(seq) for seq in (1, 2, 3, 4)]
    works.insert(at, fails)
    told = offered(store, *works)
    assert [isinstance(each, ValueError) for each in told] == [number == at for number in range(5)]
    assert seqs(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("bad", [(2, None, "k", "e", "{}", "h"), (1, 1.0, "k", "e", "{}", "h")])
@pytest.mark.parametrize("at", [1, 2, 70])
def test_a_row_that_cannot_be_written_is_its_own_work_s_fault(store, bad, at):
    store.write(append(1))
    works = [append(seq) for seq in range(3, 100)]
    works.insert(at, lambda tx: records.append(tx, bad))
    told = offered(store, *works)
    assert [isinstance(each, StoreError) for each in told] == [number == at for number in range(98)]
    assert seqs(store) == [1, *range(3, 100)]


def test_a_text_the_store_cannot_hold_takes_no_other_along(store):
    told = offered(store, append(1), lambda tx: records.append(tx, record(2, "\ud800")), append(3))
    assert [type(each) for each in told] == [type(None), UnicodeEncodeError, type(None)]
    assert seqs(store) == [1, 3]


def goes_on(tx):
    for each in (seqs, lambda tx: set_number(tx, "mine", 1)):
        with contextlib.suppress(Exception):
            each(tx)


def hides(tx):
    try:
        set_number(tx, "mine", 1)
    except Exception:
        raise ValueError("something else") from None


@pytest.mark.invariant(
    "rows that were lost take the group along, even where the work that met the error goes on"
)
@pytest.mark.parametrize("met_by", [goes_on, hides])
def test_whoever_meets_an_error_of_another_and_says_nothing_saves_no_row_and_is_not_blamed(store, met_by):
    def unwritable(tx):
        records.append(tx, (1, None, "k", "e", "{}", "h"))

    told = offered(store, append(2), unwritable, met_by, append(3))
    assert [isinstance(each, StoreError) for each in told] == [False, True, False, False]
    assert told[2] is None and change_number(store, "mine") == 1
    assert seqs(store) == [2, 3]


def test_a_full_disk_fails_all_of_the_group_and_is_not_tried_again_by_each(store, statements):
    pages = store.query("PRAGMA page_count")[0][0]
    store.write(lambda tx: tx.query(f"PRAGMA max_page_count = {pages + 3}"), alone=True)
    told = offered(store, *(append(seq, body="x" * 20_000) for seq in range(1, 13)))
    assert all(isinstance(each, StoreFullError) for each in told)
    assert statements.count("BEGIN IMMEDIATE") == 1
    assert seqs(store) == []
    store.write(lambda tx: tx.query("PRAGMA max_page_count = 1000000"), alone=True)
    assert offered(store, *(append(seq) for seq in range(1, 13))) == [None] * 12
    assert seqs(store) == list(range(1, 13))


def test_being_stopped_while_rows_are_written_is_told_to_all(store):
    class Stopped:
        def __init__(self, connection):
            self._connection = connection

        def execute(self, sql, *parameters):
            if "INTO record" in sql:
                raise KeyboardInterrupt
            return self._connection.execute(sql, *parameters)

        def __getattr__(self, name):
            return getattr(self._connection, name)

    whole = store._writer
    store._writer = Stopped(whole)
    assert [type(each) for each in offered(store, append(1), append(2))] == [KeyboardInterrupt] * 2
    store._writer = whole
    assert seqs(store) == []


def test_one_statement_may_put_in_many_rows_and_no_second_one(store):
    store.write(lambda tx: tx.insert(INTO, [("a", 1), ("b", 2), ("c", 3)]), alone=True)
    assert [change_number(store, name) for name in "abc"] == [1, 2, 3]
    store.write(lambda tx: tx.insert(INTO, []), alone=True)
    with pytest.raises(StoreError, match="more than one"):
        store.write(append(1, 2), alone=True)
    assert seqs(store) == []


@pytest.mark.parametrize("alone", [True, False])
def test_of_rows_one_of_which_cannot_be_written_none_is(store, alone):
    rows = [*((f"row {number}", number) for number in range(70)), ("last", None)]
    with pytest.raises(StoreError):
        store.write(lambda tx: tx.insert(INTO, rows), alone=alone)
    assert change_number(store, "row 0") == 0 == change_number(store, "row 69")
    store.write(lambda tx: tx.insert(INTO, rows[:-1]), alone=alone)
    assert change_number(store, "row 69") == 69


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("INSERT INTO rule (id) VALUES (?)", "rule"),
        ("insert into rule (id) select id from other", "rule"),
        ("UPDATE rule SET x = 1", "rule"),
        ("DELETE FROM\n rule WHERE id IN (SELECT id FROM other)", "rule"),
        ("INSERT INTO phase (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "phase"),
    ],
)
def test_the_table_a_statement_writes_to_is_found(sql, table):
    assert _table(sql) == table


def test_every_statement_of_ours_names_a_table_that_exists():
    """A write that is not recognised would leave a cache standing."""
    store = SqliteStore.open(state_dir())
    tables = {row[0] for row in store.query("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    store.close()
    found = []
    # The search among tools has an index of its own, in memory.
    apart = Path(checkrein.__file__).parent / "execute" / "search.py"
    for path in Path(checkrein.__file__).parent.rglob("*.py"):
        if path == apart:
            continue
        text = path.read_text("utf-8")
        # One text for several tables: what each of them makes of it.
        for table in (CLIENTS.table, API_TOKENS.table):
            filled = text.replace("{self.table}", table)
            found += re.findall(r'"((?:INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b[^"]*)"', filled)
    assert len(found) > 10
    assert {_table(sql) for sql in found} <= tables


@pytest.mark.parametrize("alone", [True, False])
def test_a_transaction_writes_once_more_before_it_commits(store, alone):
    told = []

    def work(tx):
        tx.before_commit(lambda group: set_number(group, "last", len(told)))
        tx.after(lambda: told.append(change_number(store, "last")))
        tx.insert(INTO, [("first", 7)])

    store.write(work, alone=alone)
    assert (change_number(store, "first"), change_number(store, "last"), told) == (7, 0, [0])


@pytest.mark.parametrize("alone", [True, False])
def test_what_cannot_be_written_last_takes_all_of_the_group_along(store, alone):
    def work(tx):
        tx.insert(INTO, [("first", 7)])
        tx.before_commit(lambda group: set_number(group, "last", None))

    with pytest.raises(StoreError):
        store.write(work, alone=alone)
    assert (change_number(store, "first"), change_number(store, "last")) == (0, 0)
    store.write(append(1))
    assert seqs(store) == [1]
