"""Sessions, messages, runs and calls as pages and programs get them."""

import msgspec

from checkrein.doors.chat import Message, Part, Run, Session
from checkrein.doors.chat.shown import message_view, run_view, session_view
from patience import until

AT = 1_800_000_000.0


def test_times_are_written_and_what_a_provider_said_stays_here():
    message = Message("m", "assistant", (Part(text="so"),), created_at=AT, raw="[secret]")
    view = message_view(message)
    assert "raw" not in view
    assert view["created_at"].startswith("2027-01-15T08:00:00")
    assert view["parts"][0]["text"] == "so"
    assert set(view["parts"][0]) == set(Part.__struct_fields__), "every field, also where it is empty"
    session = session_view(Session(id="s", title="t", created_at=AT, updated_at=AT))
    assert session["pinned_at"] is None
    assert run_view(Run(id="r", session="s", created_at=AT))["ended_at"] is None
    for each in (view, session):
        msgspec.json.encode(each)


def test_a_call_that_waits_says_what_a_person_needs_to_answer_it(talk):
    run = talk.say('/call notes__put {"token": "sk-ant-api03-' + "x" * 80 + '"}')
    (call,) = talk.asked()
    assert call["question"]["risk"] == "medium"
    assert call["question"]["expires_at"] > "2026"
    assert {each["what"] for each in call["question"]["offers"]} >= {"exact"}
    assert call["question"]["reasons"][0]
    assert call["arguments"]["token"].startswith("sk-ant"), "it is the person's own conversation"
    told = talk.until("approval_required", since=0)["data"]["call"]
    assert told["question"]["offers"] == call["question"]["offers"]
    talk.approve(call)
    talk.over(run)
    (call,) = talk.chat.session(id=talk.id)["calls"].values()
    assert "question" not in call
    assert call["milliseconds"] >= 0
    assert call["completed_at"] >= call["started_at"]


def test_what_was_answered_elsewhere_is_no_question_any_more(talk):
    run = talk.say("/call notes__put {}", "/then", "/say done")
    (call,) = talk.asked()
    talk.pipeline.answer(call["entry"], "denied", actor="bob", channel="telegram", message="no")
    talk.over(run)
    assert talk.calls()[0].answered_by == "bob"
    until(lambda: not talk.chat._runs.live)
