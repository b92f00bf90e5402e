"""Messages: a tree with branches, numbered without a gap by whoever writes, kept whole."""

import itertools
import sys
import threading

import msgspec
import pytest

from checkrein.doors.chat import Invocation, Message, Part, Session
from checkrein.doors.chat.bundles import Bundle, keep, renewed
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import InputError, NotFoundError
from checkrein.store.sqlite import SqliteStore


@pytest.fixture
def sessions(tmp_path):
    moments = itertools.count(1_700_000_000)
    store = SqliteStore.open(tmp_path / "store")
    yield Sessions(store, lambda: float(next(moments)))
    store.close()


@pytest.fixture
def talk(sessions):
    return sessions.create("talk")


def say(sessions, talk, text, role="user", **more):
    return sessions.add_message(talk.id, role, [Part(text=text)], **more)


def shown(sessions, talk, **more):
    return [each.parts[0].text for each in sessions.path(talk.id, **more)]


def test_a_message_is_what_was_said(sessions, talk):
    facts = {
        "provider": "p",
        "model": "m",
        "input_tokens": 0,
        "output_tokens": 7,
        "error": "e",
        "raw": '{"a": 1}',
    }
    parts = (
        Part(text="so"),
        Part(kind="attachment", data={"name": "a.png"}, mime_type="image/png", size_bytes=0),
    )
    made = sessions.add_message(talk.id, "assistant", parts, id="mine", state="failed", run="r", **facts)
    assert sessions.message("mine") == made and made.parts == parts and made.sequence == 1
    assert {name: getattr(made, name) for name in facts} == facts
    found = sessions.get(talk.id)
    assert (found.head, found.message_count, found.last_message_at) == ("mine", 1, made.created_at)


@pytest.mark.parametrize(
    "output",
    [0, False, "", [], {}, None, 0.0, -1, 2**80, 1e300, "\x00", "a\x00b", [None, {"": ""}], "\u2028"],
)
def test_results_of_every_kind_survive(sessions, talk, output):
    part = Part(kind="tool_result", tool_call_id="c", data=output)
    made = sessions.add_message(talk.id, "tool", [part])
    found = sessions.message(made.id).parts[0].data
    assert found == output and type(found) is type(output)
    assert sessions.path(talk.id)[0].parts[0].data == output


def test_halves_of_characters_are_joined_or_replaced(sessions, talk):
    parts = [Part(text="a\ud83d\ude00b \ud800"), Part(kind="metadata", data={"\udc00": ["\ud83d"]})]
    made = sessions.add_message(talk.id, "assistant", parts, error="\ud800", raw="\udfff")
    found = sessions.message(made.id)
    assert found.parts[0].text == "a😀b \ufffd" and found.parts[1].data == {"\ufffd": ["\ufffd"]}
    assert (found.error, found.raw) == ("\ufffd", "\ufffd")


def test_what_no_json_can_say_is_refused_and_nothing_written(sessions, talk):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for data in (object(), deep):
        with pytest.raises(InputError):
            sessions.add_message(talk.id, "assistant", [Part(kind="metadata", data=data)])
    assert sessions.get(talk.id) == talk


@pytest.mark.parametrize("parts", [[], [Part(text="")], [Part(text=" \n")]])
def test_an_empty_message_of_a_person_is_refused(sessions, talk, parts):
    with pytest.raises(InputError, match="empty"):
        sessions.add_message(talk.id, "user", parts)
    assert sessions.add_message(talk.id, "assistant", parts, state="streaming").sequence == 1


def test_what_cannot_be_is_refused(sessions, talk):
    other = say(sessions, sessions.create(), "elsewhere")
    made = say(sessions, talk, "here")
    for wrong in ({"role": "boss"}, {"state": "odd"}, {"id": made.id}):
        with pytest.raises(InputError):
            say(sessions, talk, "x", **wrong)
    for wrong in (other.id, "nowhere"):
        with pytest.raises(NotFoundError):
            say(sessions, talk, "x", parent=wrong)
        with pytest.raises(NotFoundError):
            sessions.path(talk.id, until=wrong)
        with pytest.raises(NotFoundError):
            sessions.choose(talk.id, wrong)
        with pytest.raises(NotFoundError):
            sessions.delete_message(talk.id, wrong)
    with pytest.raises(NotFoundError):
        sessions.rewrite("nowhere", [Part(text="x")])
    assert sessions.get(talk.id).message_count == 1


def test_editing_makes_a_branch_and_either_can_be_chosen(sessions, talk):
    first = say(sessions, talk, "q1")
    say(sessions, talk, "a1", "assistant")
    edited = say(sessions, talk, "q1 anew", parent="")
    say(sessions, talk, "a2", "assistant")
    assert shown(sessions, talk) == ["q1 anew", "a2"]
    assert sessions.siblings(talk.id) == dict.fromkeys((first.id, edited.id), (first.id, edited.id))
    sessions.choose(talk.id, first.id)
    assert shown(sessions, talk) == ["q1", "a1"]
    assert say(sessions, talk, "q2").sequence == 5 and shown(sessions, talk) == ["q1", "a1", "q2"]
    assert shown(sessions, talk, until=edited.id) == ["q1 anew"]
    assert sessions.get(talk.id).message_count == 5


def test_choosing_shows_what_was_said_last_below(sessions, talk):
    root = say(sessions, talk, "root")
    for text in ("a", "b"):
        say(sessions, talk, text, "assistant", parent=root.id)
    newest = say(sessions, talk, "b2")
    sessions.choose(talk.id, root.id)
    assert sessions.get(talk.id).head == newest.id
    sessions.delete_message(talk.id, newest.id)
    assert shown(sessions, talk) == ["root", "b"]
    assert sessions.choose(talk.id, root.id).head != newest.id


def test_a_message_may_be_added_without_showing_it(sessions, talk):
    first = say(sessions, talk, "first")
    say(sessions, talk, "aside", move_head=False)
    assert sessions.get(talk.id).head == first.id and shown(sessions, talk) == ["first"]


def test_a_deleted_message_is_out_of_the_path_and_the_counts(sessions, talk):
    first, second, third = (say(sessions, talk, text) for text in "abc")
    sessions.delete_message(talk.id, second.id)
    assert shown(sessions, talk) == ["a", "c"] and sessions.message(second.id).deleted
    sessions.delete_message(talk.id, third.id)
    found = sessions.get(talk.id)
    assert (found.head, found.message_count, found.last_message_at) == (first.id, 1, first.created_at)
    sessions.delete_message(talk.id, first.id)
    sessions.delete_message(talk.id, first.id)
    found = sessions.get(talk.id)
    assert (found.head, found.message_count, found.last_message_at) == ("", 0, None)
    assert say(sessions, talk, "d").sequence == 4 and shown(sessions, talk) == ["d"]


def test_deleted_branches_are_no_siblings(sessions, talk):
    one, two = say(sessions, talk, "1", parent=""), say(sessions, talk, "2", parent="")
    assert set(sessions.siblings(talk.id)) == {one.id, two.id}
    sessions.delete_message(talk.id, one.id)
    assert sessions.siblings(talk.id) == {}


def test_rewriting_changes_what_is_given_and_nothing_else(sessions, talk):
    made = say(sessions, talk, "so", "assistant", state="streaming", input_tokens=5, raw="r")
    found = sessions.rewrite(made.id, [Part(text="so far")])
    assert found == msgspec.structs.replace(made, parts=(Part(text="so far"),))
    found = sessions.rewrite(made.id, [], state="completed", output_tokens=0, error="x", raw="")
    assert (found.parts, found.state, found.input_tokens, found.output_tokens) == ((), "completed", 5, 0)
    assert (found.error, found.raw, sessions.get(talk.id).message_count) == ("x", "", 1)


def test_a_call_is_shown_as_it_stands(sessions, talk):
    part = Part(kind="tool_invocation", tool_call_id="c1", tool_name="s__t", data={}, status="pending")
    made = sessions.add_message(talk.id, "assistant", [Part(text="I call"), part], run="r1")
    # The same id in another run is another call.
    other = sessions.add_message(talk.id, "assistant", [part], run="r2")
    assert sessions.path(talk.id)[0].parts[1].status == "pending"
    given = {"name": "s__t", "server": "s", "tool": "t", "arguments": {}, "message": made.id}
    sessions.put_call(Invocation(run="r1", call_id="c1", session=talk.id, **given))
    sessions.change_call("r1", "c1", expect=("pending",), status="denied")
    assert [each.parts[-1].status for each in sessions.path(talk.id)] == ["denied", "pending"]
    assert sessions.message(made.id).parts[1].status == "denied"
    assert sessions.message(other.id).parts[0].status == "pending"


def test_many_writers_at_once_are_numbered_without_a_gap(sessions, talk):
    def write():
        for number in range(25):
            say(sessions, talk, f"m{number}")

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path = sessions.path(talk.id)
    assert [each.sequence for each in path] == list(range(1, 151))
    assert sessions.get(talk.id).message_count == 150


def test_a_session_of_ten_thousand_messages_opens_quickly(sessions):
    said = [
        Message(f"m{n}", "user", (Part(text=f"{n} " * 50),), n, parent=f"m{n - 1}" if n else "")
        for n in range(10_000)
    ]
    session = Session(id="x", title="long", created_at=1.0, updated_at=1.0, head="m9999")
    made = keep(sessions, renewed(Bundle(session=session, messages=said), 5.0))
    called = []
    sys.setprofile(lambda _frame, event, _more: called.append(event))
    try:
        path = sessions.path(made.id)
    finally:
        sys.setprofile(None)
    assert [each.parts for each in path] == [each.parts for each in said]
    # About one call of a function for each message: a look into the store for each is several.
    assert len(called) < 5 * len(said)


def test_going_back_to_a_message_makes_room_beside_what_followed_it(sessions):
    talk = sessions.create().id
    first = sessions.add_message(talk, "user", [Part(text="first")])
    second = sessions.add_message(talk, "assistant", [Part(text="second")])
    assert sessions.rewind(talk, first.id).head == first.id
    other = sessions.add_message(talk, "assistant", [Part(text="other")])
    assert [each.id for each in sessions.path(talk)] == [first.id, other.id]
    assert sessions.siblings(talk)[other.id] == (second.id, other.id)
    with pytest.raises(NotFoundError):
        sessions.rewind(sessions.create().id, first.id)
