from checkrein.store import rules
from checkrein.store.changes import change_number, set_number


def test_every_change_of_rules_is_counted(store):
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


def test_a_number_can_be_kept(store):
    store.write(lambda tx: set_number(tx, "mirror", 7))
    store.write(lambda tx: set_number(tx, "mirror", 9))
    assert change_number(store, "mirror") == 9
    assert change_number(store, "nothing") == 0
