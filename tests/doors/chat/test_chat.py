"""The chat door: its values, the same after a trip through JSON; and the service the server has of it."""

import time

import msgspec
import pytest

from checkrein.doors.chat import Message, Part, Snapshot
from checkrein.errors import InputError, NotFoundError, StoreError
from checkrein.store.questions import waiting

CALL = Part(
    kind="tool_invocation", tool_call_id="c1", tool_name="files__read", data={"path": "/a"}, status="pending"
)


def test_a_message_is_the_same_after_a_trip_through_json():
    message = Message("m1", "assistant", (Part(text="so"), CALL), sequence=3)
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_parts_keep_outputs_that_are_false():
    for output in (0, False, "", [], {}):
        part = Part(kind="tool_result", tool_call_id="c1", data=output)
        assert msgspec.json.decode(msgspec.json.encode(part), type=Part).data == output


def test_values_do_not_change():
    with pytest.raises(AttributeError):
        CALL.status = "completed"
    with pytest.raises(AttributeError):
        Snapshot(id="s", text="t", cutoff="m", tokens=1, created_at=0.0).text = "other"


def test_an_unknown_kind_or_role_is_refused():
    for document in (b'{"id":"m","role":"robot"}', b'{"id":"m","role":"user","parts":[{"kind":"gift"}]}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(document, type=Message)


# -- the service ----------------------------------------------------------------------------------------


def test_it_says_whether_a_model_can_answer(talking, user_settings):
    talk = talking()
    assert talk.chat.status() == {"ready": True, "provider": "demo", "model": "demo", "reason": ""}
    user_settings('[chat]\nmodel = "nobody/has-it"')
    status = talk.chat.status()
    assert status["ready"] is False
    assert "nobody/has-it" in status["reason"]


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


def test_the_picked_model_answers(talk):
    with pytest.raises(NotFoundError):
        talk.chat.update(id=talk.id, model="nobody/has-it")
    talk.chat.update(id=talk.id, model="demo/demo")
    assert talk.chat.session(id=talk.id)["session"]["provider"] == "demo"
    talk.finish("hello")
    assert talk.messages()[-1]["model"] == "demo"
    assert talk.models.last.ref == "demo/demo"
    talk.chat.update(id=talk.id, model="")
    assert talk.chat.session(id=talk.id)["session"]["provider"] == ""


def test_a_conversation_is_called_what_it_began_with_until_somebody_names_it(talk):
    talk.finish("  How  do I\nbake bread? " + "x" * 100)
    title = talk.chat.session(id=talk.id)["session"]["title"]
    assert title.startswith("How do I bake bread? xxx")
    assert len(title) <= 60
    talk.chat.update(id=talk.id, title="Bread")
    talk.finish("more")
    assert talk.chat.session(id=talk.id)["session"]["title"] == "Bread"


def test_another_answer_and_another_question_stand_beside_the_first(talk):
    talk.finish("/say first")
    question, answer = talk.messages()
    assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    view = talk.chat.session(id=talk.id)
    beside = view["siblings"][view["messages"][1]["id"]]
    assert beside == [answer["id"], view["messages"][1]["id"]]
    edited = talk.chat.edit(session=talk.id, message=question["id"], text="/say second")
    assert talk.over(edited["run"]) == "end"
    assert talk.answer() == "second"
    assert len(talk.chat.session(id=talk.id)["siblings"]) == 4
    talk.chat.choose(session=talk.id, message=question["id"])
    assert talk.answer() == "first"
    with pytest.raises(InputError):
        talk.chat.edit(session=talk.id, message=answer["id"], text="mine")
    with pytest.raises(InputError):
        talk.chat.edit(session=talk.id, message=question["id"], text="  ")
    with pytest.raises(NotFoundError):
        talk.chat.regenerate(session=talk.id, message="nothing")
    talk.check()


def test_there_is_nothing_to_answer_anew_in_an_empty_session(talk):
    with pytest.raises(InputError, match="nothing to answer"):
        talk.chat.regenerate(session=talk.id)
    assert talk.finish("hello") == "end"


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
    begun = time.monotonic()
    found = talk.chat.events(session=talk.id, after=talk.last, wait=0.2)
    assert found == {"events": [], "last": talk.last}
    assert 0.1 < time.monotonic() - begun < 5
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


def test_tools_are_shown_with_what_the_rules_say(talk, rules):
    rules.add("allow", "get")
    rules.add("deny", "put", reason="not here")
    talk.chat.update(id=talk.id, tools_off=["notes__get"])
    (server,) = talk.chat.tools(session=talk.id)
    found = {each["tool"]: each for each in server["tools"]}
    assert server["on"] is True
    assert (found["get"]["policy"], found["get"]["on"]) == ("allow", False)
    assert (found["put"]["policy"], found["put"]["on"]) == ("deny", True)
    assert "not here" in found["put"]["why"]
    assert found["put"]["schema"] == {"type": "object"}


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


def test_models_come_with_their_limits(talk):
    (demo,) = talk.chat.models()
    assert demo["ref"] == "demo/demo"
    assert demo["input"] > 1000
    assert demo["default"] is True


def test_after_it_ended_it_says_so(talk):
    talk.chat.close()
    with pytest.raises(StoreError, match="not running"):
        talk.say("hello")


def test_what_was_sent_at_the_very_end_of_an_answer_follows_it(talk):
    """Where a message goes is looked up once nobody else works in the session."""
    taken = talk.chat._runs.take

    def late(session):
        taken(session)
        talk.store.add_message(talk.id, "assistant", [Part(text="just finished")])

    talk.finish("/say one")
    talk.chat._runs.take = late
    run = talk.say("/say two")
    talk.chat._runs.take = taken
    talk.over(run)
    texts = [each["parts"][0]["text"] for each in talk.messages()]
    assert texts == ["/say one", "one", "just finished", "/say two", "two"]
