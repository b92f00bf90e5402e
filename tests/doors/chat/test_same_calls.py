"""Two calls of a conversation that are just the same: each is asked about, and answered, for itself."""

import pytest

from chat_ground import calls
from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.store.questions import count_waiting, settled_with, waiting
from patience import until

PUT = '{"text": "a"}'


@pytest.fixture
def inbox(talk):
    """Asks as a person at a terminal does."""
    pipeline = talk.pipeline
    asked = Asked(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), myself())
    return lambda name, /, **params: perform(asked, f"question.{name}", params)


@pytest.fixture
def run(talk):
    talk.models.acts = [calls(("notes__put", PUT, "one"), ("notes__put", PUT, "two"))]
    made = talk.say("/say done")
    talk.asked(2)
    return made


def statuses(talk):
    return {each.call_id: each.status for each in talk.calls()}


def test_both_stand_in_the_inbox(talk, run, inbox):
    found = inbox("list")
    assert len(found) == 2 and {each["same"] for each in found} == {1}
    assert count_waiting(talk.pipeline.store, talk.pipeline.clock()) == 2
    one, two = waiting(talk.pipeline.store)
    assert one.binding == two.binding
    assert settled_with(talk.pipeline.store, one) == [one]
    talk.chat.abort(run=run)


def test_one_yes_in_the_inbox_runs_one_of_them(talk, run, inbox):
    first, second = inbox("list")
    assert inbox("answer", id=first["id"], answer="approved")["answer"] == "approved"
    until(lambda: "completed" in statuses(talk).values())
    assert len(talk.tools.ran) == 1
    assert [each["id"] for each in inbox("list")] == [second["id"]]
    inbox("answer", id=second["id"], answer="denied", message="once is enough")
    assert talk.over(run) == "end"
    assert sorted(statuses(talk).values()) == ["completed", "denied"]
    assert len(talk.tools.ran) == 1
    talk.check()


def test_one_no_in_the_inbox_refuses_one_of_them(talk, run, inbox):
    first, second = inbox("list")
    inbox("answer", id=first["id"], answer="denied")
    inbox("answer", id=second["id"], answer="approved")
    assert talk.over(run) == "end"
    assert len(talk.tools.ran) == 1
    talk.check()


def test_both_are_answered_where_both_are_chosen(talk, run, inbox):
    chosen = [{"id": each["id"], "answer": "approved"} for each in inbox("list")]
    assert [each["answer"] for each in inbox("answer_all", answers=chosen)] == ["approved", "approved"]
    assert talk.over(run) == "end"
    assert len(talk.tools.ran) == 2
    talk.check()
