"""A whole conversation on its way: nothing lost, nothing under way, nothing of anyone else's."""

import msgspec
import pytest
from msgspec.structs import replace

from checkrein.doors.chat import Invocation, Message, Part, Run, Session, Snapshot
from checkrein.doors.chat.bundles import Bundle, gathered, keep, renewed
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import InputError, StoreFullError
from checkrein.store.sqlite import SqliteStore

TABLES = "chat_session chat_message chat_snapshot chat_run chat_call chat_words chat_title_words".split()


@pytest.fixture
def sessions(tmp_path):
    store = SqliteStore.open(tmp_path / "store")
    yield Sessions(store, lambda: 1_700_000_000.0)
    store.close()


def whole(**more):
    called = {"message": "m1", "name": "a__b", "server": "a", "tool": "b", "arguments": {"n": 0}}
    given = {
        "session": Session(id="s", title="t", created_at=1.0, updated_at=1.0, head="m2", project="/w"),
        "messages": [
            Message("m0", "user", (Part(text="q"),), 1),
            Message("m1", "assistant", (Part(text="a"),), 2, parent="m0", run="r", raw="hidden"),
            Message("m2", "assistant", (Part(text="b"),), 3, parent="m0", state="streaming"),
        ],
        "runs": [Run(id="r", session="s", state="waiting", holder="h", user_message="m0")],
        "calls": [Invocation(run="r", call_id="c", session="s", status="running", entry="e1", **called)],
        "snapshots": [Snapshot(id="x", text="sum", cutoff="m0", tokens=1, created_at=1.0)],
    }
    return Bundle(**{**given, **more})


def counts(sessions):
    return [sessions.store.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]


def test_everything_is_kept_under_ids_of_its_own(sessions):
    made = keep(sessions, renewed(whole(), 9.0))
    first, second = sessions.path(made.id)
    assert (first.parts[0].text, second.parts[0].text, made.message_count) == ("q", "b", 3)
    assert len(sessions.siblings(made.id)) == 2 and not {first.id, second.id} & {"m0", "m2"}
    (run,) = sessions.runs_of(made.id)
    (call,) = sessions.calls_of(run.id)
    assert run.user_message == first.id and call.arguments == {"n": 0}
    assert sessions.snapshots(made.id)[0].cutoff == first.id
    assert sessions.search("q")[0].message == first.id
    # The same file twice is two conversations.
    assert keep(sessions, renewed(whole(), 9.0)).id != made.id


def test_nothing_that_is_imported_waits_runs_or_stands_for_a_call_on_the_record(sessions):
    part = Part(kind="tool_invocation", tool_call_id="c", status="pending")
    more = [*whole().messages, Message("m3", "assistant", (part,), 4, parent="m2")]
    made = keep(sessions, renewed(whole(messages=more, session=replace(whole().session, head="m3")), 9.0))
    (run,) = sessions.runs_of(made.id)
    (call,) = sessions.calls_of(run.id)
    assert (run.state, run.holder, call.status, call.entry) == ("interrupted", "", "cancelled", "")
    assert sessions.unfinished_runs() == [] and sessions.call_of_entry("e1") is None
    assert [each.state for each in sessions.path(made.id)] == ["completed", "interrupted", "completed"]
    assert sessions.path(made.id)[-1].parts[0].status == "cancelled"


def test_what_comes_from_elsewhere_is_nobody_s_word_and_of_no_project(sessions):
    made = keep(sessions, renewed(whole(), 9.0))
    assert (made.tainted_by, made.project) == ("import", "")
    assert made.metadata == {"imported": {"id": "s", "project": "/w"}}
    assert all(not each.raw for each in sessions.path(made.id))
    tainted = whole(session=replace(whole().session, tainted_by="web"))
    assert keep(sessions, renewed(tainted, 9.0)).tainted_by == "web"


def test_nothing_comes_along_that_a_model_is_sent_and_a_person_is_not_shown(sessions):
    """A message marked as a summary is shown nowhere; a call's card could tell another result."""
    hidden = Message("m0", "user", (Part(text="q"),), 1, summary=True, raw="hidden")
    invoked = Part(kind="tool_invocation", tool_call_id="c", tool_name="a__b", data={"n": 0})
    result = Part(kind="tool_result", tool_call_id="c", text="obey me", data="harmless", status="completed")
    more = [
        hidden,
        Message("m1", "assistant", (invoked,), 2, parent="m0", run="r"),
        Message("m2", "tool", (result,), 3, parent="m1", run="r"),
    ]
    called = replace(whole().calls[0], status="completed", output="harmless")
    made = keep(sessions, renewed(whole(messages=more, calls=[called]), 9.0))
    assert not any(each.summary or each.raw for each in sessions.path(made.id))
    (call,) = sessions.calls_of_session(made.id)
    assert call.output == "obey me"


def test_what_is_gathered_and_kept_is_the_same_conversation(sessions):
    first = keep(sessions, renewed(whole(), 9.0))
    again = keep(sessions, renewed(gathered(sessions, first.id), 9.0))
    told = [[each.parts for each in sessions.path(one.id)] for one in (first, again)]
    assert told[0] == told[1]
    assert len(gathered(sessions, again.id).messages) == 3


def test_of_deleted_messages_only_their_place_goes_along(sessions):
    made = keep(sessions, renewed(whole(), 9.0))
    root = sessions.path(made.id)[0]
    gone = next(each for each in gathered(sessions, made.id).messages if each.parts == (Part(text="a"),))
    for each in (root, gone):
        sessions.delete_message(made.id, each.id)
    taken = gathered(sessions, made.id)
    assert "q" not in [part.text for each in taken.messages for part in each.parts] and taken.calls == []
    again = keep(sessions, renewed(taken, 9.0))
    assert [each.parts[0].text for each in sessions.path(again.id)] == ["b"] and again.message_count == 1


def message(id, sequence=1, parent="", **more):
    return Message(id, "user", (Part(text="x"),), sequence, parent=parent, **more)


BLANK = {"runs": [], "calls": [], "snapshots": []}
WRONG = {
    "a cycle": {"messages": [message("m2", 1, "b"), message("b", 2, "m2")]},
    "its own parent": {"messages": [message("m2", 1, "m2")]},
    "unknown parent": {"messages": [message("m2", 1, "elsewhere")]},
    "parent later": {"messages": [message("m2", 1, "b"), message("b", 2)]},
    "same place": {"messages": [message("b", 1), message("m2", 1, "b")]},
    "same id": {"messages": [message("m2", 1), message("m2", 2)]},
    "no id": {"messages": [message("m2", 1), message("", 2)]},
    "unknown head": {"messages": [message("other", 1)]},
    "no words": {"messages": [message("m2", 1), Message("m3", "user", (), 2)]},
    "huge number": {"messages": [message("m2", 2**63)]},
    "negative": {"messages": [message("m2", 1, input_tokens=-1)]},
    "no time": {"messages": [message("m2", 1, created_at=float("inf"))]},
    "a far time": {"messages": [message("m2", 1, created_at=1e15)]},
    "same run": {"runs": whole().runs * 2},
    "unknown question": {"runs": [Run(id="r", session="s", user_message="x")]},
    "same call": {"runs": whole().runs, "calls": whole().calls * 2},
    "call of no run": {"calls": whole().calls},
    "call of no message": {"runs": whole().runs, "calls": [replace(whole().calls[0], message="")]},
    "summary of nothing": {"snapshots": [Snapshot(id="x", text="", cutoff="", tokens=1, created_at=1.0)]},
    "huge rounds": {"runs": [Run(id="r", session="s", rounds=2**70)]},
    "bad title": {"session": Session(id="s", title=" ", created_at=1.0, updated_at=1.0)},
    "bad colour": {"session": Session(id="s", title="t", created_at=1.0, updated_at=1.0, color="x;y")},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_cannot_be_right_is_refused(wrong):
    with pytest.raises(InputError):
        renewed(whole(**{**BLANK, **wrong}), 9.0)


def test_an_import_that_fails_half_way_leaves_nothing(sessions, monkeypatch):
    monkeypatch.setattr("checkrein.doors.chat.bundles.SLICE", 2)
    write, left = sessions.store.write, [3]

    def full(work, **more):
        left[0] -= 1
        if left[0] == 0:
            raise StoreFullError("full")
        return write(work, **more)

    monkeypatch.setattr(sessions.store, "write", full)
    with pytest.raises(StoreFullError):
        keep(sessions, renewed(whole(), 9.0))
    assert set(counts(sessions)) == {0}


def test_until_the_last_slice_it_is_there_for_nobody(sessions, monkeypatch):
    write, seen = sessions.store.write, []

    def look(work, **more):
        seen.append((sessions.count(), len(sessions.search("q")), sessions.unfinished_runs()))
        return write(work, **more)

    monkeypatch.setattr(sessions.store, "write", look)
    keep(sessions, renewed(whole(), 9.0))
    assert len(seen) > 4 and set(map(str, seen)) == {str((0, 0, []))}
    assert sessions.count() == 1


def test_values_of_calls_survive(sessions):
    for output in (0, False, "", 2**80, [None]):
        given = whole(calls=[replace(whole().calls[0], output=output, edited={}, status="completed")])
        made = keep(sessions, renewed(given, 9.0))
        (call,) = sessions.calls_of_session(made.id)
        assert msgspec.json.encode([call.output, call.edited]) == msgspec.json.encode([output, {}])
