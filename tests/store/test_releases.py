import threading

from checkrein.store.releases import add_release, released, use_release


def put(store, entry="e-1", binding="b", now=1.0, until=9.0):
    store.write(lambda tx: add_release(tx, entry, binding, now, until, "ada"))


def use(store, entry="e-1", now=5.0):
    return store.write(lambda tx: use_release(tx, entry, now))


def test_it_covers_its_binding_until_its_time(store):
    put(store)
    assert released(store, "b", 8.999) == "e-1"
    assert released(store, "b", 9.0) is None
    assert released(store, "other", 5.0) is None
    assert not use(store, now=9.0)


def test_it_is_taken_once(store):
    put(store)
    assert use(store)
    assert not use(store)
    assert released(store, "b", 5.0) is None
    assert not use(store, "never released")


def test_of_many_who_take_it_at_once_one_has_it(store):
    put(store)
    won, gate = [], threading.Barrier(12)

    def work():
        gate.wait()
        won.append(use(store))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 1


def test_made_again_it_is_one_and_not_two(store):
    put(store)
    put(store, now=2.0, until=12.0)
    assert use(store, now=10.0)
    assert released(store, "b", 10.0) is None


def test_made_again_after_it_was_used_it_may_be_used_again(store):
    put(store)
    assert use(store)
    put(store, now=6.0, until=16.0)
    assert use(store, now=7.0)


def test_two_blocked_calls_alike_are_two_releases(store):
    put(store, "e-1", now=1.0)
    put(store, "e-2", now=2.0)
    assert released(store, "b", 5.0) == "e-1"
    assert use(store, "e-1")
    assert released(store, "b", 5.0) == "e-2"
