"""What becomes of a question: who hears the answer, and how one ends without a person's word."""

import asyncio
import threading

import pytest

from authority.program import CALL, approved, call, decided
from checkrein.authority import paused
from checkrein.authority.wish import Wish
from checkrein.call import ToolCall
from checkrein.core import approvals
from checkrein.core.approvals import answer_to, so_far, wait, withdraw
from checkrein.core.lifecycle import State, state_of
from checkrein.core.redemption import get_entry
from checkrein.errors import InputError, NotFoundError
from checkrein.store.questions import get_question
from deciding import approve, set_user_phase
from deciding import asked as asked_of
from patience import PATIENCE, soon, until

WEEK = 7 * 86_400.0


@pytest.fixture(autouse=True)
def building(pipeline):
    set_user_phase(pipeline, "building")


def state(pipeline, entry):
    return get_question(pipeline.store, entry).state


def moved(pipeline, entry):
    return state_of(get_entry(pipeline.store, entry))


# -- who is told ------------------------------------------------------------------------------------------


@pytest.mark.invariant("an answer is given to nobody but the very call it was asked for")
def test_a_question_is_told_to_the_exact_call_only(pipeline):
    entry = decided(pipeline).entry
    assert so_far(pipeline, entry, CALL) is None
    for other in (call(arguments={"n": 2}), call(session="t"), call(agent="other")):
        for tell in (so_far, approvals.bound):
            with pytest.raises(InputError, match="no question about this call"):
                tell(pipeline, entry, other)
        with pytest.raises(InputError):
            withdraw(pipeline, entry, other, "")
    assert wait(pipeline, entry, CALL, 0.0) is None
    assert state(pipeline, entry) == "asked"


@pytest.mark.invariant("a question nobody answered in time is a no")
def test_nobody_in_time_is_a_no(pipeline, clock):
    entry = decided(pipeline).entry
    clock.now += 301
    assert wait(pipeline, entry, CALL, PATIENCE).state == "expired"
    with pytest.raises(InputError):
        pipeline.answer(entry, "approved", actor="ada", channel="host")


def test_whoever_waits_hears_the_answer(pipeline):
    entry, heard = decided(pipeline).entry, []
    waiting = threading.Thread(target=lambda: heard.append(wait(pipeline, entry, CALL, PATIENCE)))
    waiting.start()
    until(lambda: pipeline.broker.is_awaited(entry))
    pipeline.answer(entry, "denied", actor="ada", channel="host", message="no")
    waiting.join(PATIENCE)
    assert [(each.state, each.actor, each.message) for each in heard] == [("denied", "ada", "no")]
    assert not pipeline.broker.is_awaited(entry)


def test_who_is_told_to_stop_waits_no_longer(pipeline):
    stop = threading.Event()
    stop.set()
    entry = decided(pipeline).entry
    assert wait(pipeline, entry, CALL, PATIENCE, stop) is None and state(pipeline, entry) == "asked"


def test_a_question_is_withdrawn_once(pipeline):
    entry = decided(pipeline).entry
    withdraw(pipeline, entry, CALL, "enough")
    withdraw(pipeline, entry, CALL, "enough")
    assert (state(pipeline, entry), so_far(pipeline, entry, CALL).message) == ("cancelled", "enough")


# -- who waits on a loop ----------------------------------------------------------------------------------


@pytest.fixture
def asked(pipeline):
    given = ToolCall(tool="lookup", server="notes", arguments={"name": "x"}, door="chat", session="s")
    found = pipeline.decide(given, asking=True)
    assert found.asked
    return found.entry


def test_whoever_waits_on_a_loop_hears_the_answer_from_another_thread(pipeline, asked):
    async def main():
        waiting = asyncio.create_task(answer_to(pipeline, asked))
        await soon(lambda: pipeline.broker.is_awaited(asked))
        await asyncio.to_thread(pipeline.answer, asked, "approved", actor="me", channel="console")
        return await asyncio.wait_for(waiting, PATIENCE)

    assert asyncio.run(main()).state == "approved"
    assert not pipeline.broker.is_awaited(asked)


def test_an_answer_that_was_there_before_is_heard_at_once(pipeline, asked):
    pipeline.answer(asked, "denied", actor="me", channel="console", message="not today")
    found = asyncio.run(answer_to(pipeline, asked))
    assert (found.state, found.message) == ("denied", "not today")


@pytest.mark.invariant("a question nobody answered in time is a no")
def test_nobody_in_time_is_a_no_for_who_waits_on_a_loop(pipeline, asked):
    question = get_question(pipeline.store, asked)
    pipeline.clock = lambda: question.expires_at + 1
    assert asyncio.run(answer_to(pipeline, asked)).state == "expired"


def test_a_question_that_is_gone_is_said_to_be(pipeline):
    with pytest.raises(NotFoundError):
        asyncio.run(answer_to(pipeline, "nothing"))


# -- ending without a person ------------------------------------------------------------------------------


def test_a_second_answer_changes_nothing(pipeline, asked):
    assert approvals.close(pipeline, asked, "cancelled", "client", "first")
    assert not approvals.close(pipeline, asked, "expired", "timeout")
    with pytest.raises(InputError):
        pipeline.answer(asked, "approved", actor="you", channel="console")
    found = get_question(pipeline.store, asked)
    assert (found.state, found.actor, found.message) == ("cancelled", "", "first")


def test_nothing_is_closed_that_was_never_asked(pipeline):
    assert not approvals.close(pipeline, "nothing", "cancelled", "client")
    approvals.abandon(pipeline, "nothing", "client", "it went away")
    allowed = decided(pipeline, wish=Wish(let="x")).entry
    approvals.abandon(pipeline, allowed, "client", "it went away")
    assert moved(pipeline, allowed) is State.started


def test_a_caller_that_never_comes_back_ends_its_question_or_its_approval(pipeline):
    entry = decided(pipeline).entry
    approvals.abandon(pipeline, entry, "client", "it went away")
    assert moved(pipeline, entry) is State.cancelled
    entry = approved(pipeline, call(arguments={"n": 2}))
    approvals.abandon(pipeline, entry, "client", "it went away")
    found = get_entry(pipeline.store, entry)
    assert (state_of(found), found.result, found.evidence) == (State.finished, "cancelled", "client")
    assert not pipeline.claim(entry)
    begun = approved(pipeline, call(arguments={"n": 3}))
    assert pipeline.claim(begun)
    approvals.abandon(pipeline, begun, "client", "it went away")
    assert moved(pipeline, begun) is State.claimed


def test_questions_nobody_waits_for_run_out(pipeline, clock):
    left, awaited = decided(pipeline).entry, decided(pipeline, call(arguments={"n": 2})).entry
    clock.now += 301
    with pipeline.broker.awaiting(awaited):
        approvals.expire_all(pipeline)
    assert (state(pipeline, left), state(pipeline, awaited)) == ("expired", "asked")


def test_an_approval_nobody_comes_for_ends_unused(pipeline, clock):
    entry, awaited = approved(pipeline), approved(pipeline, call(arguments={"n": 2}))
    clock.now += WEEK - 1
    approvals.sweep(pipeline)
    assert moved(pipeline, entry) is State.approved
    clock.now += 2
    with pipeline.broker.awaiting(awaited):
        approvals.sweep(pipeline)
    found = get_entry(pipeline.store, entry)
    assert (state_of(found), found.result, found.evidence) == (State.finished, "cancelled", "not claimed")
    assert moved(pipeline, awaited) is State.approved
    assert not pipeline.claim(entry) and pipeline.claim(awaited)


def test_the_user_says_how_long_an_approval_waits(pipeline, clock, user_settings):
    entry = approved(pipeline)
    user_settings("[approval]\nclaim_seconds = 60")
    clock.now += 61
    approvals.sweep(pipeline)
    assert get_entry(pipeline.store, entry).evidence == "not claimed"


def test_a_call_that_began_and_was_never_reported_is_unknown(pipeline, clock):
    entry, hook = approved(pipeline), asked_of(pipeline, "make x", "/p")
    approve(pipeline, hook)
    assert pipeline.claim(entry)
    clock.now += WEEK + 1
    approvals.sweep(pipeline)
    for each in (entry, hook):
        found = get_entry(pipeline.store, each)
        assert (state_of(found), found.evidence) == (State.unknown, "not reported")


def test_what_is_over_is_swept_once(pipeline, clock):
    entry = approved(pipeline)
    assert pipeline.claim(entry)
    pipeline.finish(entry, "success")
    clock.now += WEEK + 1
    for _ in range(2):
        approvals.sweep(pipeline)
    found = get_entry(pipeline.store, entry)
    assert (found.result, found.evidence) == ("success", "")


# -- calls of an earlier process --------------------------------------------------------------------------


@pytest.mark.invariant("a call whose process ended before it did is on the record as unknown")
def test_calls_of_an_earlier_process_are_unknown_and_those_of_other_doors_are_not(pipeline):
    running = decided(pipeline, wish=Wish(let="x")).entry
    claimed = approved(pipeline, call(arguments={"n": 2}))
    assert pipeline.claim(claimed)
    over = decided(pipeline, call(arguments={"n": 3}), Wish(let="x")).entry
    pipeline.finish(over, "success")
    waits = approved(pipeline, call(arguments={"n": 4}))
    stopped = decided(pipeline, call(arguments={"n": 5}), Wish(let="x")).entry
    paused.pause(pipeline, stopped, call(arguments={"n": 5}), 1, {"why": "x"})
    elsewhere = decided(pipeline, call(arguments={"n": 6}, door="gateway"), Wish(let="x")).entry
    for _ in range(2):
        approvals.end_left_behind(pipeline, "library", "the program ended")
    for each in (running, claimed):
        found = get_entry(pipeline.store, each)
        assert (state_of(found), found.evidence) == (State.unknown, "the program ended")
    assert get_entry(pipeline.store, over).result == "success"
    assert moved(pipeline, waits) is State.approved
    assert [moved(pipeline, each) for each in (stopped, elsewhere)] == [State.started] * 2


def test_a_tool_that_went_on_and_was_left_is_unknown(pipeline):
    entry = decided(pipeline, wish=Wish(let="x")).entry
    paused.pause(pipeline, entry, CALL, 1, {"why": "x"})
    assert paused.go_on(pipeline, entry, CALL, 1, "building").arguments
    approvals.end_left_behind(pipeline, "library", "the program ended")
    assert moved(pipeline, entry) is State.unknown
