"""Questions and those who wait for them: over real rows, with real threads."""

import threading

import pytest

from checkrein.approval.broker import Broker
from checkrein.approval.question_calls import QuestionCalls
from checkrein.call import ToolCall
from checkrein.settings.sources import state_dir
from checkrein.store import questions
from patience import until

A_DAY = 86_400.0

CALL = ToolCall(tool="Bash", arguments={"command": "make x"})


@pytest.fixture
def calls(pipeline):
    return QuestionCalls(pipeline.store, state_dir())


@pytest.fixture
def broker(pipeline, calls):
    return Broker(pipeline.store, calls)


@pytest.fixture
def ask(pipeline, calls):
    def put(entry):
        question = questions.Question(
            entry=entry, session="s", project="/p", binding="b", asked_at=1.0, expires_at=2.0
        )
        sealed = calls.seal_call(entry, CALL, "auditing")
        pipeline.store.write(lambda tx: questions.add_question(tx, question, sealed))
        return entry

    return put


@pytest.fixture
def record(pipeline, calls):
    """Records an answer, of which nobody is told."""

    def answer(entry, state="approved", edited=None):
        sealed = "" if edited is None else calls.seal_edit(entry, edited)
        said = {"now": 1.5, "actor": "ada", "channel": "x", "message": "", "sealed_edit": sealed}
        pipeline.store.write(lambda tx: questions.settle(tx, entry, state, **said))

    return answer


@pytest.fixture
def settle(record, broker):
    def answer(entry, state="approved", edited=None):
        record(entry, state, edited)
        broker.settled(entry)

    return answer


def test_an_answer_wakes_whoever_waits(broker, ask, settle):
    entry, seen = ask("e1"), []
    waiter = threading.Thread(target=lambda: seen.append(broker.wait(entry, A_DAY)))
    waiter.start()
    until(lambda: broker.is_awaited(entry))
    settle(entry)
    waiter.join()
    assert seen[0].state == "approved"
    assert not broker.is_awaited(entry)


def test_an_answer_that_was_there_before_is_not_waited_for(broker, ask, settle):
    settle(ask("e1"), "denied")
    assert broker.wait("e1", A_DAY).state == "denied"


def test_without_an_answer_waiting_ends_in_time_and_says_nothing(broker, ask):
    assert broker.wait(ask("e1"), 0.05) is None
    assert broker.wait("never asked", A_DAY) is None


def test_the_answer_to_one_question_is_none_to_another(broker, ask, settle):
    ask("e1")
    ask("e2")
    with broker.awaiting("e1"), broker.awaiting("e2"):
        settle("e2")
        assert broker.wait("e1", 0.01) is None
        assert broker.wait("e2", 0.01).state == "approved"


def test_the_call_of_a_question_is_known_before_and_after_its_answer(broker, ask, settle):
    assert broker.call("e1") is None and broker.asked_call("e1") is None
    assert broker.call(ask("e1")) == CALL
    asked = broker.asked_call("e1")
    assert (asked.call, asked.phase) == (CALL, "auditing")
    settle("e1", edited={"command": "make y"})
    assert broker.call("e1") == CALL
    assert broker.call("e2") is None


def test_waiting_that_breaks_off_leaves_nothing_behind(broker):
    with pytest.raises(OSError), broker.awaiting("e1"):
        raise OSError
    assert not broker.is_awaited("e1")


def test_no_flood_of_questions_makes_a_call_forgotten(broker, ask):
    """Else a yes would be let through that nobody judged again."""
    ask("mine")
    for number in range(1_200):
        ask(f"e{number}")
    assert broker.call("mine") == CALL and broker.call("e0") == CALL


def test_an_edit_changes_the_arguments_and_leaves_the_call_as_it_was_asked(broker, ask):
    asked = broker.asked_call(ask("e1"))
    edited = asked.edited({"command": "make y"})
    assert (edited.call.tool, edited.call.arguments, edited.phase) == (
        "Bash",
        {"command": "make y"},
        "auditing",
    )
    assert asked.call == CALL and CALL.arguments == {"command": "make x"}


def test_everyone_who_waited_hears_the_edit_also_after_the_waiting(broker, ask, settle):
    """What runs is what was approved: not the call as it was before a person changed it."""
    with broker.awaiting(ask("e1")):
        settle("e1", edited={"command": "make y"})
        assert broker.wait("e1", A_DAY).state == "approved"
    assert broker.edited("e1") == broker.edited("e1") == {"command": "make y"}
    assert broker.edited("e2") is None


def test_a_call_and_its_edit_are_known_after_a_restart(broker, ask, settle, pipeline):
    settle(ask("e1"), edited={"command": "make y"})
    anew = Broker(pipeline.store, QuestionCalls(pipeline.store, state_dir()))
    assert (anew.call("e1"), anew.edited("e1")) == (CALL, {"command": "make y"})


def test_without_the_key_neither_a_call_nor_its_edit_is_known(broker, ask, settle, pipeline):
    settle(ask("e1"), edited={"command": "make y"})
    (state_dir() / "questions.key").unlink()
    anew = Broker(pipeline.store, QuestionCalls(pipeline.store, state_dir()))
    assert (anew.call("e1"), anew.asked_call("e1"), anew.edited("e1")) == (None, None, None)


def test_nothing_in_the_row_shows_the_call_or_the_edit(ask, settle, pipeline):
    settle(ask("e1"), edited={"command": "s3cret"})
    ((call, edit),) = pipeline.store.query("SELECT sealed_call, sealed_edit FROM question")
    assert call and edit and call != edit
    for word in ("make x", "Bash", "s3cret", "command"):
        assert word not in call + edit


def test_a_call_moved_to_another_question_is_not_read_there(broker, ask, settle, pipeline):
    settle(ask("e1"), edited={"command": "make y"})
    settle(ask("e2"), edited={"command": "rm -rf /"})
    swap = "UPDATE question SET sealed_call = ?, sealed_edit = ? WHERE entry = ?"
    ((call, edit),) = pipeline.store.query("SELECT sealed_call, sealed_edit FROM question WHERE entry = 'e2'")
    pipeline.store.write(lambda tx: tx.execute(swap, (call, edit, "e1")))
    assert (broker.call("e1"), broker.edited("e1")) == (None, None)
    pipeline.store.write(lambda tx: tx.execute(swap, (edit, call, "e2")))
    assert (broker.call("e2"), broker.edited("e2")) == (None, None)


@pytest.mark.parametrize("value", ["\ud800", 2**70, 1e300, [None, {"ä": True}]])
def test_every_argument_that_json_allows_is_kept_as_it_is(broker, ask, settle, value):
    settle(ask("e1"), edited={"n": value})
    assert broker.edited("e1") == {"n": value}


def test_somebody_is_reachable_only_while_they_look(broker):
    assert not broker.reachable
    with broker.attending():
        with broker.attending():
            pass
        assert broker.reachable
    assert not broker.reachable
    with pytest.raises(OSError), broker.attending():
        raise OSError
    assert not broker.reachable


@pytest.mark.invariant("nobody sees the answer without the arguments that were approved with it")
def test_nobody_sees_an_answer_without_the_arguments_approved_with_it(broker, ask, record):
    """A waiter that looks between the record and the telling would run the call as it was before the edit."""
    record(ask("e1"), edited={"command": "make y"})
    # Nobody is told yet.
    assert broker.wait("e1", A_DAY).state == "approved"
    assert broker.edited("e1") == {"command": "make y"}


def test_somebody_elsewhere_may_be_reachable(broker):
    answers = [True, False]
    broker.reach(answers.pop)
    assert not broker.reachable
    assert broker.reachable
    with broker.attending():
        assert broker.reachable
    broker.reach(None)
    assert not broker.reachable


def test_who_has_no_thread_to_wait_with_is_told(broker, ask, settle):
    entry, told = ask("e1"), []
    with broker.telling(entry, lambda: told.append(1)):
        assert broker.is_awaited(entry) and told == []
        settle(entry, edited={"command": "make y"})
        assert told == [1] and broker.edited(entry) == {"command": "make y"}
    assert not broker.is_awaited(entry) and broker._told == {}


def test_who_comes_too_late_is_told_at_once(broker, ask, settle):
    settle(ask("e1"))
    told = []
    with broker.telling("e1", lambda: told.append(1)):
        assert told == [1]
    assert broker._told == {}


def test_who_stopped_waiting_is_not_told_and_the_others_are(broker, ask, settle):
    entry, one, two = ask("e1"), [], []
    with broker.telling(entry, lambda: one.append(1)):
        with broker.telling(entry, lambda: two.append(1)):
            assert len(broker._told[entry]) == 2
        settle(entry)
    assert (one, two) == ([1], []) and broker._told == {}


def test_a_question_about_something_else_tells_nobody(broker, ask, settle):
    told = []
    ask("e2")
    with broker.telling(ask("e1"), lambda: told.append(1)):
        settle("e2")
        assert told == []
