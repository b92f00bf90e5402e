from checkrein.store import trust

STATE = {
    "score": 0.5,
    "successes": 2,
    "failures": 1,
    "total_operations": 3,
    "last_operated_at": 12.5,
    "is_warming_up": True,
    "warmup_remaining": 4,
}


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
