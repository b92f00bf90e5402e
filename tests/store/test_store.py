"""The behaviour every backend keeps; a new backend joins by adding a line to BACKENDS."""

import threading
import time

import pytest

from checkrein.errors import NotFoundError, StoreError
from checkrein.settings.sources import state_dir
from checkrein.store import lookup, policies, records, rules, trust
from checkrein.store.changes import change_number, change_numbers, set_number
from checkrein.store.sqlite import SqliteStore

BACKENDS = {"sqlite": lambda: SqliteStore.open(state_dir())}
STATE = {
    "score": 0.5,
    "successes": 2,
    "failures": 1,
    "total_operations": 3,
    "last_operated_at": 12.5,
    "is_warming_up": True,
    "warmup_remaining": 4,
}


@pytest.fixture(params=BACKENDS)
def store(request):
    made = BACKENDS[request.param]()
    yield made
    made.close()


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

    hold = store.submit(lambda tx: gate.wait(5))
    futures = [
        store.submit(lambda tx, n=n: rules.add_rule(tx, f"good{n}", {"action": "ask"}, 1.0)) for n in range(3)
    ]
    bad = store.submit(fails)
    futures.append(store.submit(lambda tx: rules.add_rule(tx, "good3", {"action": "ask"}, 1.0)))
    gate.set()
    for future in [hold, *futures]:
        future.result(5)
    with pytest.raises(ValueError, match="no"):
        bad.result(5)
    assert [each.id for each in rules.all_rules(store)] == ["good0", "good1", "good2", "good3"]


def test_a_broken_constraint_is_the_worker_s_own_trouble(store):
    append(store, record(1))
    gate = threading.Event()
    hold = store.submit(lambda tx: gate.wait(5))
    bad = store.submit(lambda tx: records.append(tx, record(1)))
    good = store.submit(lambda tx: records.append(tx, record(2)))
    gate.set()
    hold.result(5)
    good.result(5)
    with pytest.raises(Exception, match="UNIQUE"):
        bad.result(5)
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


def test_entries_are_found_by_what_a_person_remembers(store):
    append(
        store,
        record(1, entry="aa1"),
        record(2, entry="aa2"),
        record(3, entry="bb3"),
        record(4, "finished", "aa1"),
    )
    cards = [
        ("aa1", ["project:/p", "tool:Bash", "domain:network"]),
        ("aa2", ["project:/p", "tool:Read", "domain:file_read"]),
        ("bb3", ["project:/q", "tool:Bash", "domain:package", "domain:network"]),
    ]
    store.write(lambda tx: lookup.file(tx, 3, cards))
    store.write(lambda tx: lookup.file(tx, 4, cards))
    assert lookup.filed(store) == 4

    def found(*terms, low="", high="", limit=10):
        return lookup.find(store, terms, low, high, limit)

    assert found() == ["bb3", "aa2", "aa1"]
    assert found("project:/p") == ["aa2", "aa1"]
    assert found("domain:network") == ["bb3", "aa1"]
    assert found("domain:network", "project:/p") == ["aa1"]
    assert found("tool:Bash", "domain:network", "project:/q") == ["bb3"]
    assert found("tool:nothing") == []
    assert found(low="aa2") == ["bb3", "aa2"]
    assert found("project:/p", high="aa2") == ["aa1"]
    assert found(limit=1) == ["bb3"]
    assert lookup.is_filed(store, "aa1", ["tool:Bash", "project:/p"])
    assert not lookup.is_filed(store, "aa1", ["tool:Read"])
    assert [row[0] for row in records.of_entries(store, ["aa1"])] == [1, 4]
    assert records.of_entries(store, []) == []
    assert records.of_entries(store, [""]) == []


def test_rules_keep_their_times_and_order(store):
    store.write(lambda tx: rules.add_rule(tx, "a", {"action": "ask", "tool": "x", "uses": 2}, 1.0))
    store.write(lambda tx: rules.add_rule(tx, "b", {"action": "deny", "tool": "y"}, 2.0))
    store.write(lambda tx: rules.update_rule(tx, "a", {"action": "deny", "tool": "x"}, 3.0))
    first, _ = rules.all_rules(store)
    assert (first.id, first.body, first.uses) == ("a", {"action": "deny", "tool": "x"}, None)
    assert (first.created_at, first.updated_at) == (1.0, 3.0)
    store.write(lambda tx: rules.reorder_rules(tx, ["b", "a"]))
    assert [each.id for each in rules.all_rules(store)] == ["b", "a"]
    store.write(lambda tx: rules.delete_rule(tx, "a"))
    for missing in (rules.delete_rule, rules.get_rule):
        with pytest.raises(NotFoundError):
            store.write(lambda tx, do=missing: do(tx, "a"))
    with pytest.raises(NotFoundError):
        store.write(lambda tx: rules.update_rule(tx, "a", {}, 1.0))


def test_a_use_is_taken_at_most_as_often_as_there_are_uses(store):
    store.write(lambda tx: rules.add_rule(tx, "a", {"action": "allow", "tool": "x", "uses": 5}, 1.0))
    taken = []

    def take():
        taken.extend(store.write(lambda tx: rules.use_rule(tx, "a")) for _ in range(5))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 15 + [True] * 5
    assert rules.get_rule(store, "a").uses == 0


def test_every_change_of_rules_and_policies_is_counted(store):
    numbers = [change_number(store, "rules")]
    for work in (
        lambda tx: rules.add_rule(tx, "a", {"action": "allow", "tool": "x", "uses": 1}, 1.0),
        lambda tx: rules.update_rule(tx, "a", {"action": "allow", "tool": "x", "uses": 1}, 1.0),
        lambda tx: rules.reorder_rules(tx, ["a"]),
        lambda tx: rules.use_rule(tx, "a"),
        lambda tx: rules.delete_rule(tx, "a"),
    ):
        store.write(work)
        numbers.append(change_number(store, "rules"))
    assert numbers == sorted(set(numbers))
    store.write(lambda tx: policies.accept(tx, "/p/checkrein.toml", "abc", 1.0))
    store.write(lambda tx: policies.accept(tx, "/p/checkrein.toml", "abc", 2.0))
    assert policies.is_accepted(store, "/p/checkrein.toml", "abc")
    assert not policies.is_accepted(store, "/p/checkrein.toml", "abd")
    assert store.write(lambda tx: policies.revoke(tx, "/p/checkrein.toml")) == 1
    assert change_numbers(store)["policies"] == 3
    store.write(lambda tx: set_number(tx, "mirror", 7))
    store.write(lambda tx: set_number(tx, "mirror", 9))
    assert change_number(store, "mirror") == 9


def test_trust_is_kept_by_project_and_domain(store):
    store.write(lambda tx: trust.put_trust(tx, "/p", "file_read", STATE))
    store.write(lambda tx: trust.put_trust(tx, "/p", "file_read", STATE | {"score": 0.6}))
    store.write(lambda tx: trust.put_trust(tx, "/p", "test_run", STATE))
    store.write(lambda tx: trust.put_trust(tx, "/q", "file_read", STATE))
    assert trust.trust_of(store, "/p") == {"file_read": STATE | {"score": 0.6}, "test_run": STATE}
    assert trust.projects(store) == ["/p", "/q"]
    assert store.write(lambda tx: trust.delete_trust(tx, "/p", "file_read")) == 1
    assert set(trust.trust_of(store, "/p")) == {"test_run"}
    assert store.write(lambda tx: trust.delete_trust(tx, "/p")) == 1
    assert trust.trust_of(store, "/p") == {}


def test_a_slow_reader_does_not_hold_up_writing(store):
    append(store, *(record(seq) for seq in range(1, 3000)))
    reading = records.after(store, 0)
    next(reading)
    begin = time.monotonic()
    append(store, record(3000))
    assert time.monotonic() - begin < 5
    assert len(list(reading)) == 2999
