"""Rows of runs and calls: changed by whoever finds what they expect."""

import pytest

from checkrein.store.conversation_runs import (
    CALL,
    RUN,
    add_call,
    calls_where,
    change_call,
    change_run,
    end_all,
    get_call,
    get_run,
    runs_of,
    unfinished_runs,
)
from checkrein.store.conversations import insert, statuses_of

TEXTS = "title color provider model project system head tainted_by".split()


@pytest.fixture
def talk(store):
    free = {"message_count": 0, "tools_off": "[]", "metadata": "{}", "created_at": 1.0, "updated_at": 1.0}
    row = {"id": "s1", "presence": "here", **dict.fromkeys(TEXTS, ""), **free}
    store.write(lambda tx: insert(tx, "chat_session", row))
    return store


def a_run(id="r1", **more):
    numbers = dict.fromkeys(("rounds", "input_tokens", "output_tokens", "created_at"), 0)
    return {**dict.fromkeys(RUN, ""), **numbers, "id": id, "session": "s1", "state": "running", **more}


def a_call(call="c1", **more):
    times = dict.fromkeys(("created_at", "started_at", "completed_at"), 0.0)
    given = {"run": "r1", "call_id": call, "session": "s1", "status": "pending", "asked": False}
    return {**dict.fromkeys(CALL, ""), **times, **given, **more}


@pytest.mark.invariant("of all who would go on with a run, or end it, one does")
def test_a_run_changes_from_the_state_and_holder_expected(talk):
    talk.write(lambda tx: insert(tx, "chat_run", a_run(holder="h1")))
    tries = [
        (("waiting",), None),
        (("running",), "h2"),
        ((), None),
        (("running",), "h1"),
        (("running",), None),
    ]
    done = [talk.write(lambda tx, a=a, b=b: change_run(tx, "r1", a, b, {"state": "done"})) for a, b in tries]
    assert done == [False, False, False, True, False]
    assert get_run(talk, "r1")[RUN.index("state")] == "done" and get_run(talk, "r2") is None
    assert unfinished_runs(talk) == [] and len(runs_of(talk, "s1", 5)) == 1


@pytest.mark.invariant("of all who would carry a call out, one does")
@pytest.mark.invariant("a call that is known changes by compare-and-set alone")
def test_a_call_is_written_once_and_changes_from_the_status_expected(talk):
    assert talk.write(lambda tx: add_call(tx, a_call()))
    assert not talk.write(lambda tx: add_call(tx, a_call(status="completed")))
    done = [
        talk.write(lambda tx: change_call(tx, "r1", "c1", ("pending",), {"status": "running"}))
        for _ in range(2)
    ]
    assert done == [True, False] and statuses_of(talk, session="s1") == {("r1", "c1"): "running"}
    assert (
        get_call(talk, "r1", "c1")[CALL.index("status")] == "running" and get_call(talk, "r1", "c2") is None
    )


def test_ending_all_leaves_nothing_that_runs_or_waits(talk):
    def work(tx):
        for number, state in enumerate(("running", "waiting", "done")):
            insert(tx, "chat_run", a_run(f"r{number}", state=state))
        for number, status in enumerate(("pending", "running", "completed")):
            add_call(tx, a_call(f"c{number}", status=status))
        end_all(tx, "s1")

    talk.write(work)
    assert {row[RUN.index("state")] for row in runs_of(talk, "s1", 5)} == {"aborted", "done"}
    found = [row[CALL.index("status")] for row in calls_where(talk, "run = ?", ("r1",))]
    assert found == ["cancelled", "cancelled", "completed"]
