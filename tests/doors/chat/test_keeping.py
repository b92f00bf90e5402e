"""Conversations as they are kept and followed."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from checkrein.errors import InputError, NotFoundError
from checkrein.store.questions import waiting
from patience import PATIENCE, until


def test_a_session_is_made_found_changed_and_deleted(talk):
    begun = talk.chat.start(resource="r")
    assert begun["history"] == []
    assert begun["resource"] == "r"
    again = talk.chat.start(session=begun["session"])
    assert again["session"] == begun["session"]
    assert talk.chat.sessions()["total"] == 2
    changed = talk.chat.update(id=talk.id, title="Renamed", pinned=True)
    assert changed["title"] == "Renamed"
    talk.look()
    assert talk.seen[-1]["data"]["session"]["title"] == "Renamed"
    assert talk.chat.sessions()["sessions"][0]["id"] == talk.id
    talk.chat.delete(id=begun["session"])
    assert talk.chat.sessions()["total"] == 1
    with pytest.raises(NotFoundError):
        talk.chat.session(id=begun["session"])


def test_a_session_that_is_deleted_while_its_model_answers_leaves_nothing(talk):
    talk.say("/call notes__put {}")
    talk.asked()
    talk.chat.delete(id=talk.id)
    assert talk.chat.busy == 0
    assert waiting(talk.pipeline.store) == []
    with pytest.raises(NotFoundError):
        talk.say("hello")


def test_nothing_begins_in_a_session_that_is_on_its_way_out(talk, monkeypatch):
    """A call that asked then would wait for a person who cannot find it any more."""
    delete, late = talk.store.delete, []

    def slowly(session):
        with pytest.raises(InputError, match="answering here already"):
            late.append(talk.say('/call notes__put {"a": 1}'))
        delete(session)

    monkeypatch.setattr(talk.store, "delete", slowly)
    talk.say('/call notes__put {"a": 1}')
    talk.asked()
    talk.chat.delete(id=talk.id)
    assert late == []
    assert waiting(talk.pipeline.store) == []
    assert not talk.chat._runs._busy
    with pytest.raises(NotFoundError):
        talk.chat.delete(id=talk.id)
    assert not talk.chat._runs._busy


def test_long_conversations_come_in_pages(talk):
    for number in range(4):
        talk.finish(f"/say {number}")
    page = talk.chat.session(id=talk.id, limit=3)
    assert page["earlier"] is True
    first = talk.chat.session(id=talk.id, before=page["messages"][0]["id"])
    assert first["earlier"] is False
    assert [*first["messages"], *page["messages"]] == talk.messages()
    with pytest.raises(NotFoundError):
        talk.chat.session(id=talk.id, before="nothing")


def test_who_looks_while_a_model_writes_sees_what_there_is_and_misses_nothing(talk):
    run = talk.say("/slow 4", "/long 100")
    talk.until("text", since=0)
    for _ in range(10):
        view = talk.chat.session(id=talk.id)
        if view["run"] is None or len(view["messages"]) < 2:
            continue
        writing = view["messages"][-1]
        text = "".join(part["text"] for part in writing["parts"])
        later = [
            each["data"]
            for each in talk.chat.events(session=talk.id, after=view["last"], wait=1)["events"]
            if each["kind"] == "text" and each["data"]["message"] == writing["id"]
        ]
        for each in later:
            assert each["at"] <= len(text), "what comes next joins what was shown, or was shown already"
            text = text[: each["at"]] + each["delta"]
    assert talk.over(run) == "end"


def test_waiting_for_events_ends_with_news_or_in_time(talk):
    found = talk.chat.events(session=talk.id, after=talk.last, wait=0.2)
    assert found == {"events": [], "last": talk.last}
    with ThreadPoolExecutor(1) as pool:
        waiting_for_news = pool.submit(talk.chat.events, session=talk.id, after=talk.last, wait=PATIENCE)
        until(lambda: talk.chat._lines.followers(talk.id) == 1)
        talk.chat.update(id=talk.id, title="Renamed")
        (news,) = waiting_for_news.result()["events"]
    assert news["data"]["session"]["title"] == "Renamed"
    assert [each["kind"] for each in talk.chat.events(session=talk.id, after="old-4")["events"]] == ["reload"]
    with pytest.raises(NotFoundError):
        talk.chat.events(session="nothing")


def test_who_asks_for_events_without_having_seen_any_loses_none(talk):
    """The number to go on from is that of the line, not of whatever came while it was closed."""
    line_of = talk.chat._lines.subscribe

    def subscribe(session, after, tell):
        line = line_of(session, after, tell)
        close = line.close
        line.close = lambda: (close(), talk.chat._lines.tell(talk.id, "notice", text="just then"))
        return line

    talk.chat._lines.subscribe = subscribe
    last = talk.chat.events(session=talk.id)["last"]
    talk.chat._lines.subscribe = line_of
    assert [each["data"]["text"] for each in talk.chat.events(session=talk.id, after=last)["events"]] == [
        "just then"
    ]


def test_it_is_found_exported_and_comes_back(talk):
    talk.finish("The word is abracadabra.")
    (hit,) = [each for each in talk.chat.search(query="abracadabra") if each["message"]]
    assert hit["session"] == talk.id
    written = talk.chat.export(id=talk.id, form="json")
    assert written["name"].endswith(".json")
    back = talk.chat.import_(text=written["text"], form="json")
    assert back["id"] != talk.id
    assert [each["parts"] for each in talk.chat.session(id=back["id"])["messages"]] == [
        each["parts"] for each in talk.messages()
    ]
    assert "abracadabra" in talk.chat.export(id=talk.id, form="markdown")["text"]


def test_a_run_that_waits_for_a_person_is_shown_so(talk):
    run = talk.say('/call notes__put {"a": 1}')
    (call,) = talk.asked()
    talk.until("approval_required", run=run)
    assert talk.chat.session(id=talk.id)["run"]["state"] == "waiting"
    talk.chat.approve(run=call["run"], call=call["call_id"], actor="me")
    talk.over(run)
    assert talk.chat.session(id=talk.id)["run"] is None


def test_chat_is_not_ready_where_its_parts_are_not_installed(talk, monkeypatch):
    assert talk.chat.status() == {"ready": True, "provider": "demo", "model": "demo", "reason": ""}
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    status = talk.chat.status()
    assert not status["ready"]
    assert "pip install" in status["reason"]
