import threading

import pytest

from checkrein.errors import NotFoundError
from checkrein.store import rules


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
