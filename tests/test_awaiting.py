import asyncio

import pytest

from checkrein.awaiting import answer_to, settle
from checkrein.call import ToolCall
from checkrein.errors import NotFoundError
from checkrein.store.questions import get_question
from patience import PATIENCE, soon


@pytest.fixture
def asked(pipeline):
    call = ToolCall(tool="lookup", server="notes", arguments={"name": "x"}, door="chat", session="s")
    decided = pipeline.decide(call, asking=True)
    assert decided.asked
    return decided.entry, call


def test_whoever_waits_hears_the_answer_from_another_thread(pipeline, asked):
    entry, call = asked

    async def wait():
        waiting = asyncio.create_task(answer_to(pipeline, entry, call))
        await soon(lambda: pipeline.broker.is_awaited(entry))
        await asyncio.to_thread(pipeline.answer, entry, "approved", actor="me", channel="console")
        return await asyncio.wait_for(waiting, PATIENCE)

    assert asyncio.run(wait()).state == "approved"
    assert not pipeline.broker.is_awaited(entry)


def test_an_answer_that_was_there_before_is_heard_at_once(pipeline, asked):
    entry, call = asked
    pipeline.answer(entry, "denied", actor="me", channel="console", message="not today")
    found = asyncio.run(answer_to(pipeline, entry, call))
    assert (found.state, found.message) == ("denied", "not today")


@pytest.mark.invariant("a question nobody answered in time is a no")
def test_nobody_in_time_is_a_no(pipeline, asked):
    entry, call = asked
    question = get_question(pipeline.store, entry)
    pipeline.clock = lambda: question.expires_at + 1
    assert asyncio.run(answer_to(pipeline, entry, call)).state == "expired"


def test_a_question_that_is_gone_is_said_to_be(pipeline, asked):
    with pytest.raises(NotFoundError):
        asyncio.run(answer_to(pipeline, "nothing", asked[1]))


def test_a_second_answer_changes_nothing(pipeline, asked):
    entry, _ = asked
    asyncio.run(settle(pipeline, entry, "denied", actor="me", channel="console", message="first"))
    asyncio.run(settle(pipeline, entry, "approved", actor="you", channel="console"))
    assert get_question(pipeline.store, entry).state == "denied"
