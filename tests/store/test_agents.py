import msgspec
import pytest

from checkrein.store.agents import (
    Session,
    end_session,
    forget_processes,
    get_session,
    newest_sessions,
    put_session,
    speaking,
)

ONE = Session(
    agent="codex", id="s1", project="/p", started_at=1.0, process=7, process_started="70", attended=True
)


@pytest.fixture
def put(store):
    return lambda *sessions: [store.write(lambda tx, one=one: put_session(tx, one)) for one in sessions]


def test_a_session_is_what_was_put(store, put):
    put(ONE)
    assert get_session(store, "codex", "s1") == ONE
    assert get_session(store, "claude-code", "s1") is None
    assert get_session(store, "codex", "S1") is None


def test_a_session_that_goes_on_keeps_its_project_and_begin(store, put):
    put(ONE)
    store.write(lambda tx: end_session(tx, "codex", "s1", 5.0))
    assert get_session(store, "codex", "s1").ended_at == 5.0
    put(msgspec.structs.replace(ONE, project="/evil", started_at=9.0, process=8, process_started="80"))
    again = get_session(store, "codex", "s1")
    assert (again.project, again.started_at, again.ended_at) == ("/p", 1.0, None)
    assert (again.process, again.process_started) == (8, "80")


def test_speaking_are_all_whose_process_is_known_also_ended_ones(store, put):
    put(ONE, msgspec.structs.replace(ONE, id="s2", process=0), msgspec.structs.replace(ONE, id="s3"))
    store.write(lambda tx: end_session(tx, "codex", "s3", 5.0))
    assert [each.id for each in speaking(store)] == ["s1", "s3"]


def test_a_dead_process_is_forgotten_and_a_newer_one_is_not(store, put):
    put(ONE, msgspec.structs.replace(ONE, id="s2"))
    put(msgspec.structs.replace(ONE, process=9))
    store.write(lambda tx: forget_processes(tx, [ONE, msgspec.structs.replace(ONE, id="s2")]))
    assert [(each.id, each.process) for each in speaking(store)] == [("s1", 9)]


def test_the_newest_come_first_and_only_so_many(store, put):
    put(*(msgspec.structs.replace(ONE, id=f"s{n}", started_at=float(n)) for n in range(5)))
    put(msgspec.structs.replace(ONE, id="other", project="/q", started_at=9.0))
    assert [each.id for each in newest_sessions(store, "/p", 2)] == ["s4", "s3"]
    assert newest_sessions(store)[0].id == "other"
