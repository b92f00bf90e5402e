import threading

import pytest

from checkrein.errors import NotFoundError
from checkrein.store.grants import (
    Grant,
    add_grant,
    all_grants,
    end_session_grants,
    get_grant,
    grant_of,
    live_grants,
    revoke_grant,
    use_grant,
)


@pytest.fixture
def put(store):
    def make(grant_id="g-1", **more):
        fields = {"what": "exact", "label": "exactly this call", "project": "/p", "tool": "Bash"}
        fields |= {"made_at": 1.0, "made_by": "ada", "channel": "terminal", "entry": "e-1"}
        grant = Grant(id=grant_id, **(fields | more))
        store.write(lambda tx: add_grant(tx, grant))
        return grant

    return make


def live(store, project="/p", session="s", server=None, tool="Bash", now=5.0):
    return [each.id for each in live_grants(store, project, session, server, tool, now)]


def use(store, grant_id="g-1", now=5.0):
    return store.write(lambda tx: use_grant(tx, grant_id, now))


def test_a_grant_is_kept_as_it_was_made(store, put):
    made = put(session="s", server="db", body="{}", until=9.0, uses=3)
    assert get_grant(store, "g-1") == made
    assert all_grants(store) == [made]
    assert grant_of(store, "e-1") == made
    assert grant_of(store, "e-2") is None
    with pytest.raises(NotFoundError):
        get_grant(store, "g-2")


def test_only_its_own_project_session_server_and_tool(store, put):
    put("g-1", session="s")
    put("g-2", made_at=2.0)
    put("g-3", server="db")
    assert live(store) == ["g-1", "g-2"]
    assert live(store, session="t") == ["g-2"]
    assert live(store, session="") == ["g-2"]
    assert live(store, server="db") == ["g-3"]
    assert live(store, server="") == []
    assert live(store, project="/q") == live(store, project="/p/") == []
    assert live(store, tool="bash") == live(store, tool="%") == []


def test_it_lives_until_its_time_and_not_a_moment_longer(store, put):
    put(until=5.0)
    assert live(store, now=4.999) == ["g-1"]
    assert live(store, now=5.0) == []
    assert use(store, now=4.999)
    assert not use(store, now=5.0)


def test_its_uses_are_counted(store, put):
    put(uses=2)
    assert [use(store, now=float(now)) for now in (5, 6, 7)] == [True, True, False]
    assert live(store) == []
    found = get_grant(store, "g-1")
    assert (found.used, found.last_used_at) == (2, 6.0)


def test_many_at_once_use_it_no_more_often_than_given(store, put):
    put(uses=9)
    won, gate = [], threading.Barrier(20)

    def work():
        gate.wait()
        won.extend(use(store) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 9
    assert get_grant(store, "g-1").used == 9


def test_revoked_it_stays_for_the_record_and_covers_nothing(store, put):
    put()
    assert store.write(lambda tx: revoke_grant(tx, "g-1", "bob", 6.0))
    assert not store.write(lambda tx: revoke_grant(tx, "g-1", "eve", 7.0))
    assert live(store) == []
    assert not use(store)
    assert all_grants(store) == []
    found = get_grant(store, "g-1")
    assert (found.revoked_by, found.revoked_at) == ("bob", 6.0)


def test_a_session_takes_what_was_granted_for_it_along(store, put):
    put("g-1", session="s")
    put("g-2", session="t")
    put("g-3")
    assert store.write(lambda tx: end_session_grants(tx, "s", 6.0)) == 1
    assert live(store) == ["g-3"]
    assert live(store, session="t") == ["g-2", "g-3"]


def test_a_session_without_a_name_ends_nobody_elses(store, put):
    """What holds for every session has no session, and must not end with one that has no name."""
    put("g-1")
    store.write(lambda tx: end_session_grants(tx, "", 6.0))
    assert live(store) == ["g-1"]


def test_no_grant_is_made_twice(store, put):
    put()
    with pytest.raises(Exception, match="UNIQUE"):
        put()
