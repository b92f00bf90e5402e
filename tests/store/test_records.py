import pytest

from checkrein.store import lookup, records


def record(seq, kind="decided", entry=""):
    return (seq, float(seq), kind, entry, "{}", f"hash-{seq}")


def append(store, *rows):
    store.write(lambda tx: [records.append(tx, row) for row in rows])


def test_the_ledger_is_append_only(store):
    append(store, record(1))
    store.write(lambda tx: lookup.file(tx, 1, [("e", ["tool:x"])]))
    store.write(lambda tx: records.add_checkpoint(tx, 1, "{}", "s"))
    for statement in (
        "UPDATE record SET body = '{}'",
        "DELETE FROM record",
        "UPDATE lookup SET term = 'x'",
        "DELETE FROM lookup",
        "UPDATE checkpoint SET body = 'x'",
        "DELETE FROM checkpoint",
    ):
        with pytest.raises(Exception, match="append-only"):
            store.write(lambda tx, sql=statement: tx.execute(sql))
    assert len(list(records.after(store, 0))) == 1


def test_a_checkpoint_belongs_to_a_record(store):
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.write(lambda tx: records.add_checkpoint(tx, 99, "{}", "s"))


def test_records_are_read_in_order_and_by_kind(store):
    append(store, *(record(seq, kind="finished" if seq % 3 == 0 else "decided") for seq in range(1, 4500)))
    assert [row[0] for row in records.after(store, 0)] == list(range(1, 4500))
    assert [row[0] for row in records.after(store, 4490, ("finished",))] == [4491, 4494, 4497]
