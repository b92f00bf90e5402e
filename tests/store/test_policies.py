from checkrein.store import policies
from checkrein.store.changes import change_numbers


def test_exactly_the_accepted_content_is_accepted(store):
    store.write(lambda tx: policies.accept(tx, "/p/checkrein.toml", "abc", 1.0))
    store.write(lambda tx: policies.accept(tx, "/p/checkrein.toml", "abc", 2.0))
    assert policies.is_accepted(store, "/p/checkrein.toml", "abc")
    assert not policies.is_accepted(store, "/p/checkrein.toml", "abd")
    assert not policies.is_accepted(store, "/q/checkrein.toml", "abc")
    assert store.write(lambda tx: policies.revoke(tx, "/p/checkrein.toml")) == 1
    assert not policies.is_accepted(store, "/p/checkrein.toml", "abc")
    assert change_numbers(store)["policies"] == 3
