"""Runs and calls: whoever finds the state they expect changes it, and nobody else."""

import threading

import msgspec
import pytest

from checkrein.doors.chat import Invocation, Run
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import InputError, NotFoundError
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE


@pytest.fixture
def sessions(tmp_path):
    store = SqliteStore.open(tmp_path / "store")
    yield Sessions(store, lambda: 1_700_000_000.0)
    store.close()


@pytest.fixture
def talk(sessions):
    return sessions.create("talk")


def a_call(talk, call_id="c1", **more):
    given = {"run": "r1", "message": "m1", "name": "s__t", "server": "s", "tool": "t", "arguments": {"a": 0}}
    return Invocation(call_id=call_id, session=talk.id, **{**given, **more})


def race(work, many=8):
    """How often `work` said yes to all who asked at once."""
    ready, said = threading.Barrier(many), []

    def go():
        ready.wait(PATIENCE)
        said.append(work())

    threads = [threading.Thread(target=go) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == many
    return said.count(True)


def test_a_run_is_what_was_written(sessions, talk):
    run = Run(
        id="r1", session=talk.id, holder="h", user_message="m", provider="p", model="m", persona="worker"
    )
    sessions.add_run(run)
    assert sessions.get_run("r1") == run and sessions.get_run("r2") is None
    assert sessions.unfinished_runs() == [run]
    with pytest.raises(NotFoundError):
        sessions.add_run(Run(id="r2", session="nowhere"))


def test_the_newest_runs_come_first_and_those_that_are_over_are_finished(sessions, talk):
    for number in range(3):
        sessions.add_run(Run(id=f"r{number}", session=talk.id))
    assert sessions.change_run("r1", expect=("running",), state="done", ended_at=5.0)
    assert [run.id for run in sessions.runs_of(talk.id, limit=2)] == ["r2", "r1"]
    assert [run.id for run in sessions.unfinished_runs()] == ["r0", "r2"]
    assert sessions.get_run("r1").ended_at == 5.0


def test_a_run_changes_only_from_the_state_and_holder_expected(sessions, talk):
    sessions.add_run(Run(id="r1", session=talk.id, holder="h1", state="waiting"))
    assert not sessions.change_run("r1", expect=("running",), state="done")
    assert not sessions.change_run("r1", expect=("waiting",), expect_holder="h2", state="done")
    assert not sessions.change_run("r2", expect=("waiting",), state="done")
    assert not sessions.change_run("r1", expect=(), state="done")
    assert sessions.change_run("r1", expect=("running", "waiting"), expect_holder="h1", holder="h2", rounds=2)
    found = sessions.get_run("r1")
    assert (found.state, found.holder, found.rounds) == ("waiting", "h2", 2)


@pytest.mark.parametrize(
    "changes", [{}, {"session": "x"}, {"state": "odd"}, {"rounds": "many"}, {"colour": "red"}]
)
def test_a_run_is_not_changed_to_nonsense(sessions, talk, changes):
    sessions.add_run(Run(id="r1", session=talk.id))
    with pytest.raises(InputError):
        sessions.change_run("r1", expect=("running",), **changes)


def test_of_all_who_would_go_on_with_a_run_one_does(sessions, talk):
    sessions.add_run(Run(id="r1", session=talk.id, state="waiting"))
    assert race(lambda: sessions.change_run("r1", expect=("waiting",), state="running")) == 1


@pytest.mark.parametrize("output", [0, False, "", [], {}, None, 2**80, "\x00"])
def test_a_call_is_what_was_written_whatever_came_of_it(sessions, talk, output):
    call = a_call(
        talk, arguments={"n": 2**70, "f": False}, edited={}, output=output, asked=True, started_at=0.0
    )
    assert sessions.put_call(call)
    found = sessions.call("r1", "c1")
    assert found == call and type(found.output) is type(output)
    assert sessions.call("r1", "c2") is None and sessions.call("r2", "c1") is None


def test_an_edit_to_nothing_is_an_edit(sessions, talk):
    sessions.put_call(a_call(talk))
    assert sessions.call("r1", "c1").edited is None
    sessions.change_call("r1", "c1", expect=("pending",), edited={})
    assert sessions.call("r1", "c1").edited == {}
    sessions.change_call("r1", "c1", expect=("pending",), edited=None, output=None)
    assert sessions.call("r1", "c1").edited is None


def test_a_call_that_is_known_changes_by_compare_and_set_alone(sessions, talk):
    sessions.put_call(a_call(talk))
    sessions.change_call("r1", "c1", expect=("pending",), status="completed", output="done")
    assert not sessions.put_call(a_call(talk))
    assert sessions.call("r1", "c1").status == "completed"
    with pytest.raises(NotFoundError):
        sessions.put_call(msgspec.structs.replace(a_call(talk), session="nowhere"))


def test_of_all_who_would_carry_a_call_out_one_does(sessions, talk):
    for number in range(5):
        sessions.put_call(a_call(talk, f"c{number}"))
        won = race(
            lambda number=number: sessions.change_call(
                "r1", f"c{number}", expect=("pending",), status="running"
            )
        )
        assert won == 1


def test_calls_are_found_in_the_order_they_were_made(sessions, talk):
    for number in (2, 1, 3):
        sessions.put_call(a_call(talk, f"c{number}", message=f"m{number % 2}", entry=f"e{number}"))
    assert [each.call_id for each in sessions.calls_of("r1")] == ["c2", "c1", "c3"]
    assert [each.call_id for each in sessions.calls_of_message("m1")] == ["c1", "c3"]
    assert len(sessions.calls_of_session(talk.id)) == 3
    assert sessions.call_of_entry("e3").call_id == "c3" and sessions.call_of_entry("e4") is None


def test_a_call_without_an_entry_is_of_no_entry(sessions, talk):
    sessions.put_call(a_call(talk))
    assert sessions.call_of_entry("") is None


@pytest.mark.parametrize(
    "changes", [{}, {"message": "x"}, {"status": "odd"}, {"arguments": []}, {"asked": "no"}]
)
def test_a_call_is_not_changed_to_nonsense(sessions, talk, changes):
    sessions.put_call(a_call(talk))
    with pytest.raises(InputError):
        sessions.change_call("r1", "c1", expect=("pending",), **changes)
