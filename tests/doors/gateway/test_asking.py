"""Who can be asked about a call, who waits, and what becomes of the question; over a real pipeline."""

import asyncio
import contextlib

import msgspec
import pytest

from checkrein.asking import Remember
from checkrein.call import ToolCall
from checkrein.doors.gateway import asking as asking_module
from checkrein.doors.gateway.asking import Asking, waiting_result
from checkrein.doors.gateway.clients import Client, Flight, Visit
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, response
from checkrein.doors.gateway.prompts import Answer
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.questions import get_question
from doors.gateway.loop_turns import loop_turns
from patience import PATIENCE, soon

YES = {"action": "accept", "content": {}}


class Ear:
    def __init__(self):
        self.heard = []

    def send(self, message):
        self.heard.append(message)

    def of(self, method):
        return [each for each in self.heard if each["method"] == method]


def client(era=HANDSHAKE, **capabilities):
    made = Client(era=era, agent="a", label="l", owner="o", visit=Visit("s"), send=lambda _message: None)
    made.capabilities = capabilities
    return made


@pytest.fixture
def asking(pipeline):
    return Asking(pipeline, "ada")


@pytest.fixture
def ask(pipeline):
    """Puts a question and returns what a caller knows of it."""

    def put(**more):
        call = ToolCall(
            **{
                "tool": "t",
                "server": "s",
                "door": "gateway",
                "session": "x",
                "agent": "a",
                "project": "default",
                **more,
            }
        )
        decided = pipeline.decide(call, asking=True)
        assert decided.asked
        return call, decided.entry, decided.verdict

    return put


def state(pipeline, entry):
    return get_question(pipeline.store, entry).state


def test_who_can_be_asked(asking, pipeline, user_settings):
    able, unable = client(elicitation={}), client()
    assert asking.by_client(able) and not asking.by_client(unable)
    assert asking.possible(able, "default") and not asking.possible(unable, "default")
    with pipeline.broker.attending():
        assert asking.possible(unable, "default")
    able.speaks_for_person = False
    assert not asking.by_client(able) and not asking.possible(able, "default")
    user_settings('[gateway]\nno_person = "wait"')
    assert asking.possible(unable, "default")


def run_answer(asking, who, question, during, params=None):
    """The answer to a question while something happens."""

    async def main():
        ear = Ear()
        flight = Flight(who, 1, ear)
        task = asyncio.ensure_future(asking.answer(who, flight, params or {}, *question))
        await during(ear, task)
        return await asyncio.wait_for(task, PATIENCE), ear

    return asyncio.run(main())


def test_the_client_that_cannot_ask_leaves_it_to_somebody_who_can(asking, pipeline, ask):
    who, question = client(elicitation={}), ask()

    async def during(ear, task):
        await soon(lambda: ear.heard)
        with pipeline.broker.attending():
            who.answered({"id": ear.heard[0]["id"], "error": {"code": -1, "message": "no window"}})
            await loop_turns()
            assert not task.done()
            await asyncio.to_thread(pipeline.answer, question[1], "approved", actor="bob", channel="terminal")
            await task

    settled, _ = run_answer(asking, who, question, during)
    assert (settled.state, settled.actor) == ("approved", "bob")


def test_signs_of_life_are_sent_while_a_person_is_asked(asking, pipeline, ask, monkeypatch):
    monkeypatch.setattr(asking_module, "_SIGN_OF_LIFE", 0.02)
    who, question = client(elicitation={}), ask()

    async def during(ear, _task):
        await soon(lambda: len(ear.of("notifications/progress")) >= 3)
        who.answered(response(ear.of("elicitation/create")[0]["id"], YES))

    settled, ear = run_answer(asking, who, question, during, {"_meta": {"progressToken": "t"}})
    steps = [each["params"] for each in ear.of("notifications/progress")]
    assert [each["progress"] for each in steps] == list(range(1, len(steps) + 1))
    assert {each["progressToken"] for each in steps} == {"t"} and settled.state == "approved"


@pytest.mark.invariant("a call that nobody was asked about does not run")
def test_nobody_to_ask_means_wait_and_nothing_runs(asking, pipeline, ask):
    async def during(_ear, _task):
        """Nothing happens."""

    settled, ear = run_answer(asking, client(), ask(), during)
    assert settled.waits and settled.state == "asked" and ear.heard == []


def test_a_caller_that_stops_waiting_takes_its_dialog_away(asking, ask):
    async def given_up(question):
        who, ear = client(elicitation={}), Ear()
        task = asyncio.ensure_future(asking.answer(who, Flight(who, 1, ear), {}, *question))
        await soon(lambda: ear.heard)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert ear.of("notifications/cancelled")

    asyncio.run(given_up(ask()))


def test_a_question_whose_caller_gave_up_is_withdrawn_or_left_open(asking, pipeline, ask, user_settings):
    call, entry, _ = ask()
    asyncio.run(asking.given_up(call, entry))
    assert state(pipeline, entry) == "cancelled" and asking.left_open(call) is None
    user_settings('[gateway]\nno_person = "wait"')
    call, entry, _ = ask(arguments={"n": 2})
    asyncio.run(asking.given_up(call, entry))
    assert state(pipeline, entry) == "asked" and asking.left_open(call).entry == entry


def test_a_question_left_open_is_found_by_exactly_its_call_until_it_is_over(asking, pipeline, ask):
    call, entry, _ = ask(arguments={"n": 1})
    assert asking.left_open(call).entry == entry
    for other in (
        {"arguments": {"n": 2}},
        {"session": "y"},
        {"agent": "b"},
        {"tool": "u"},
        {"project": "elsewhere"},
        {"user": "eve"},
        {"door": "library"},
    ):
        assert asking.left_open(msgspec.structs.replace(call, **other)) is None, other
    # Its caller hears that the tool changed, and is not asked a second time.
    assert asking.left_open(msgspec.structs.replace(call, definition="h")).entry == entry
    pipeline.answer(entry, "approved", actor="ada", channel="console")
    assert asking.left_open(call).entry == entry
    assert pipeline.claim(entry)
    assert asking.left_open(call) is None


@pytest.mark.parametrize("ends", ["denied", "expired", "cancelled"])
def test_a_question_that_is_over_is_not_found(asking, pipeline, ask, ends):
    call, entry, _ = ask(arguments={"n": 3})
    pipeline.answer(entry, ends, actor="ada", channel="console")
    assert asking.left_open(call) is None


def test_an_approval_that_was_dropped_is_not_found(asking, pipeline, ask):
    call, entry, _ = ask(arguments={"n": 3})
    pipeline.answer(entry, "approved", actor="ada", channel="console")
    assert asking.left_open(call) is not None
    assert pipeline.drop(entry, evidence="client", reason="the client went away")
    assert asking.left_open(call) is None


def test_a_question_somebody_waits_for_is_not_found(asking, pipeline, ask):
    call, entry, _ = ask()
    with pipeline.broker.awaiting(entry):
        assert asking.left_open(call) is None
    assert asking.left_open(call).entry == entry


def test_of_two_questions_about_one_call_the_older_comes_first(asking, pipeline, ask, clock):
    call, first, _ = ask()
    clock.now += 1
    _, second, _ = ask()
    assert asking.left_open(call).entry == first
    # An answer of a person is to both.
    pipeline.answer(first, "approved", actor="ada", channel="console")
    assert pipeline.claim(first)
    assert asking.left_open(call).entry == second


def test_questions_left_open_are_found_by_the_next_server(pipeline, ask, clock):
    call, entry, _ = ask()
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert Asking(later, "ada").left_open(call).entry == entry


def test_questions_of_other_doors_are_never_found(asking, ask):
    call, _, _ = ask(door="library")
    assert asking.left_open(call) is None


@pytest.mark.invariant("a question nobody answered in time is a no")
def test_a_question_whose_time_is_over_is_a_no_when_somebody_comes_for_it(asking, pipeline, ask, clock):
    _, entry, verdict = ask()
    assert asyncio.run(asking.so_far(entry, verdict)) is None
    clock.pass_days(1)
    assert asyncio.run(asking.so_far(entry, verdict)).state == "expired"
    assert state(pipeline, entry) == "expired"


def test_what_a_client_says_is_recorded_unless_somebody_was_quicker(asking, pipeline, ask):
    _, entry, verdict = ask()
    pipeline.answer(entry, "denied", actor="bob", channel="console")
    settled = asyncio.run(asking.said(entry, Answer("approved"), verdict))
    assert (settled.state, settled.actor) == ("denied", "bob")


def test_an_answer_that_cannot_be_remembered_still_counts(asking, pipeline, ask):
    _, entry, verdict = ask(session="")
    said = Answer("approved", remember=Remember(what="exact", span="session"))
    assert asyncio.run(asking.said(entry, said, verdict)).state == "approved"


def test_a_question_that_is_gone_is_no_yes(asking, ask):
    _, _, verdict = ask()
    settled = asyncio.run(asking.said("no-such-entry", Answer("approved"), verdict))
    assert settled.state == "denied"


def test_who_answers_is_not_troubled_by_a_gateway_that_has_ended(asking, pipeline, ask):
    """The loop that waited is closed; the person's answer is recorded all the same."""
    question = ask()
    loop = asyncio.new_event_loop()
    who = client(elicitation={})

    async def begin():
        loop.kept = asyncio.ensure_future(asking.answer(who, Flight(who, 1, Ear()), {}, *question))
        await soon(lambda: pipeline.broker._told.get(question[1]))

    loop.run_until_complete(begin())
    waiting = list(pipeline.broker._told[question[1]])
    loop.kept.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        loop.run_until_complete(loop.kept)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    for tell in waiting:
        tell()


def test_a_waiting_result_says_how_to_come_back():
    found = waiting_result(ToolCall(tool="t", server="s"), "e1")
    assert found["isError"] and found["_meta"] == {"checkrein/waiting": {"record": "e1"}}
    assert "exactly the same arguments" in found["content"][0]["text"]


def test_a_stateless_client_is_not_sent_a_question(asking, pipeline, ask):
    question = ask()

    async def during(ear, task):
        with pipeline.broker.attending():
            await loop_turns()
            assert ear.heard == []
            await asyncio.to_thread(pipeline.answer, question[1], "denied", actor="bob", channel="console")
            await task

    with pipeline.broker.attending():
        settled, ear = run_answer(asking, client(STATELESS, elicitation={}), question, during)
    assert settled.state == "denied" and ear.heard == []
