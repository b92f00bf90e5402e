import pytest

from checkrein.store.phases import all_phases, clear_phase, phase_for, set_phase


@pytest.fixture
def put(store):
    return lambda name, **where: store.write(lambda tx: set_phase(tx, name, 1.0, **where))


def test_the_session_s_phase_then_the_project_s_then_the_user_s(store, put):
    assert phase_for(store, "/p", "s") is None
    put("auditing")
    assert phase_for(store, "/p", "s") == "auditing"
    put("building", project="/p")
    assert phase_for(store, "/p", "s") == "building"
    assert phase_for(store, "/q", "s") == "auditing"
    put("planning", session="s")
    assert phase_for(store, "/p", "s") == phase_for(store, "/q", "s") == "planning"
    assert phase_for(store, "/p", "other") == "building"


def test_nobody_s_session_and_no_project_have_the_user_s_phase_only(store, put):
    put("planning", session="s")
    put("planning", project="/p")
    assert phase_for(store, "", "") is None
    put("auditing")
    assert phase_for(store, "", "") == "auditing"


@pytest.mark.parametrize("odd", ["-", "%", "_", "'", "\x00", " "])
def test_no_spelling_of_a_session_or_project_stands_for_another(store, put, odd):
    put("building", session=odd)
    put("building", project=f"/{odd}")
    for project, session in (("", ""), ("/p", ""), ("", "s"), ("/p", "s")):
        assert phase_for(store, project, session) is None
    assert phase_for(store, "", odd) == "building"


def test_a_session_is_found_whatever_project_it_was_set_with(store, put):
    put("planning", project="/p", session="s")
    assert phase_for(store, "/q", "s") == "planning"
    assert phase_for(store, "/p", "other") is None


def test_setting_again_replaces_and_clearing_uncovers(store, put):
    put("planning", project="/p")
    put("building", project="/p")
    put("auditing")
    assert [row[:3] for row in all_phases(store)] == [("", "", "auditing"), ("/p", "", "building")]
    assert store.write(lambda tx: clear_phase(tx, project="/p")) == 1
    assert store.write(lambda tx: clear_phase(tx, project="/p")) == 0
    assert phase_for(store, "/p", "s") == "auditing"
