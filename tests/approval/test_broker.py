"""Questions and those who wait for them: over real rows, with real threads."""

import threading

import pytest

from checkrein.approval import broker as broker_module
from checkrein.approval.broker import Broker
from checkrein.call import ToolCall
from checkrein.store import questions
from patience import PATIENCE, until

A_DAY = 86_400.0

CALL = ToolCall(tool="Bash", arguments={"command": "make x"})


@pytest.fixture
def broker(pipeline):
    return Broker(pipeline.store)


@pytest.fixture
def ask(pipeline):
    def put(entry):
        question = questions.Question(
            entry=entry, session="s", project="/p", binding="b", asked_at=1.0, expires_at=2.0
        )
        pipeline.store.write(lambda tx: questions.add_question(tx, question))
        return entry

    return put


@pytest.fixture
def settle(pipeline, broker):
    def answer(entry, state="approved", edited=None):
        pipeline.store.write(
            lambda tx: questions.settle(tx, entry, state, now=1.5, actor="ada", channel="x", message="")
        )
        broker.settled(entry, edited)

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
    with broker.awaiting("e1", CALL), broker.awaiting("e2", CALL):
        settle("e2")
        assert broker.wait("e1", 0.01) is None
        assert broker.wait("e2", 0.01).state == "approved"


def test_the_call_is_known_while_somebody_may_answer_and_no_longer(broker, ask, settle):
    broker.keep("e1", CALL)
    assert broker.call("e1") == CALL
    settle("e1")
    assert broker.call("e1") is None
    with broker.awaiting("e2", CALL):
        with broker.awaiting("e2", CALL):
            pass
        assert broker.call("e2") == CALL
    assert broker.call("e2") is None


def test_waiting_that_breaks_off_leaves_nothing_behind(broker):
    with pytest.raises(OSError), broker.awaiting("e1", CALL):
        raise OSError
    assert broker.call("e1") is None
    assert not broker.is_awaited("e1")


@pytest.mark.invariant("a call somebody waits for is never forgotten, so its answer is always judged")
def test_a_call_somebody_waits_for_is_never_forgotten(broker, monkeypatch):
    """Else a flood of questions would let a yes through that nobody judged again."""
    monkeypatch.setattr(broker_module, "_CALLS_KEPT", 4)
    with broker.awaiting("mine", CALL):
        for number in range(20):
            broker.keep(f"e{number}", CALL)
        assert broker.call("mine") == CALL
        assert broker.call("e19") == CALL
        assert broker.call("e0") is None
        assert len(broker._calls) <= 4


@pytest.mark.invariant("an edited call is approved only while somebody waits who can run the edited one")
def test_an_edited_call_needs_somebody_who_can_run_it(broker):
    broker.keep("e1", CALL)
    assert broker.edit("e1", {"command": "make y"}) is None
    assert broker.edit("e2", {"command": "make y"}) is None
    with broker.awaiting("e1", CALL):
        edited = broker.edit("e1", {"command": "make y"})
    assert (edited.tool, edited.arguments) == ("Bash", {"command": "make y"})
    assert CALL.arguments == {"command": "make x"}


def test_everyone_who_waited_hears_the_edit_also_after_the_waiting(broker, ask, settle):
    """What runs is what was approved: not the call as it was before a person changed it."""
    with broker.awaiting(ask("e1"), CALL):
        settle("e1", edited={"command": "make y"})
        assert broker.wait("e1", A_DAY).state == "approved"
    assert broker.edited("e1") == broker.edited("e1") == {"command": "make y"}
    assert broker.edited("e2") is None


def test_old_edits_do_not_fill_the_memory(broker, monkeypatch):
    monkeypatch.setattr(broker_module, "_CALLS_KEPT", 4)
    for number in range(10):
        broker.settled(f"e{number}", {"n": number})
    assert len(broker._edits) == 4
    assert broker.edited("e9") == {"n": 9}


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
def test_nobody_sees_an_answer_without_the_arguments_approved_with_it(broker, ask, pipeline):
    """A waiter that looks between the record and the telling would run the call as it was before the edit."""
    ask("e1")
    recorded, go_on, seen = threading.Event(), threading.Event(), []

    def answer():
        with broker.settling():
            pipeline.store.write(
                lambda tx: questions.settle(tx, "e1", "approved", now=1.5, actor="a", channel="x", message="")
            )
            recorded.set()
            go_on.wait(PATIENCE)
            broker.settled("e1", {"command": "make y"})

    def wait():
        seen.append((broker.wait("e1", A_DAY).state, broker.edited("e1")))

    threads = [threading.Thread(target=answer), threading.Thread(target=wait)]
    threads[0].start()
    recorded.wait(PATIENCE)
    threads[1].start()
    # Where it does not take turns with the answer, it has looked by then.
    threads[1].join(0.05)
    assert seen == []
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert seen == [("approved", {"command": "make y"})]


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
    with broker.telling(entry, CALL, lambda: told.append(1)):
        assert broker.is_awaited(entry) and broker.call(entry) is CALL and told == []
        settle(entry, edited={"command": "make y"})
        assert told == [1] and broker.edited(entry) == {"command": "make y"}
    assert not broker.is_awaited(entry) and broker.call(entry) is None and broker._told == {}


def test_who_comes_too_late_is_told_at_once(broker, ask, settle):
    settle(ask("e1"))
    told = []
    with broker.telling("e1", CALL, lambda: told.append(1)):
        assert told == [1]
    assert broker._told == {}


def test_who_stopped_waiting_is_not_told_and_the_others_are(broker, ask, settle):
    entry, one, two = ask("e1"), [], []
    with broker.telling(entry, CALL, lambda: one.append(1)):
        with broker.telling(entry, CALL, lambda: two.append(1)):
            assert len(broker._told[entry]) == 2
        settle(entry)
    assert (one, two) == ([1], []) and broker._told == {}


def test_a_question_about_something_else_tells_nobody(broker, ask, settle):
    told = []
    ask("e2")
    with broker.telling(ask("e1"), CALL, lambda: told.append(1)):
        settle("e2")
        assert told == []
