"""Conversations as a person keeps them: made, set, listed, found, and gone when they are deleted."""

import itertools
import threading

import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.doors.chat import Invocation, Part, Run, Snapshot
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import InputError, NotFoundError
from checkrein.store import conversations
from checkrein.store.sqlite import SqliteStore

TABLES = "chat_session chat_message chat_snapshot chat_run chat_call chat_words chat_title_words".split()


@pytest.fixture
def sessions(tmp_path):
    moments = itertools.count(1_700_000_000)
    store = SqliteStore.open(tmp_path / "store")
    yield Sessions(store, lambda: float(next(moments)))
    store.close()


def say(sessions, session, text, role="user", **more):
    return sessions.add_message(session.id, role, [Part(text=text)], **more)


def texts(hits):
    return ["".join(piece for _, piece in hit.snippet) for hit in hits]


def test_a_session_is_what_was_chosen(sessions):
    made = sessions.create(
        "Plans", provider="p", model="m", project="/w", system="Be short.", metadata={"a": 0}
    )
    assert sessions.get(made.id) == made and made.metadata == {"a": 0} and made.message_count == 0
    assert sessions.create().title == "New chat"
    with pytest.raises(NotFoundError, match="nowhere"):
        sessions.get("nowhere")


def test_the_list_has_pinned_ones_first_then_the_last_changed(sessions):
    first, second, third = (sessions.create(name) for name in "abc")
    sessions.update(first.id, pinned=True)
    say(sessions, second, "hello")
    assert [each.title for each in sessions.list()] == ["a", "b", "c"]
    sessions.update(third.id, archived=True)
    assert [each.title for each in sessions.list(archived=True)] == ["c"]
    assert [each.title for each in sessions.list(limit=1, offset=1)] == ["b"]
    assert (sessions.count(), sessions.count(archived=True)) == (2, 1)
    assert sessions.list(limit=-1) == []


def test_tidying_up_does_not_move_a_session_to_the_top(sessions):
    old, new = sessions.create("old"), sessions.create("new")
    sessions.update(old.id, color="red")
    assert sessions.update(old.id, pinned=True, archived=True).updated_at == old.updated_at
    assert sessions.update(old.id, pinned=False, archived=False).archived_at is None
    assert [each.title for each in sessions.list()] == ["new", "old"]
    assert sessions.update(old.id, title="older").updated_at > new.updated_at


def test_pinning_twice_keeps_the_first_moment(sessions):
    made = sessions.create()
    first = sessions.update(made.id, pinned=True, archived=True)
    again = sessions.update(made.id, pinned=True, archived=True)
    assert (again.pinned_at, again.archived_at) == (first.pinned_at, first.archived_at)


def test_everything_that_can_be_set_is_kept(sessions):
    made = sessions.create()
    choices = {"threshold": 0.8, "retention_tokens": 0, "auto_compress": False, "tainted_by": "web"}
    sessions.update(made.id, tools_off=["b", "a__x"], metadata={"k": [None, ""]}, **choices)
    found = sessions.get(made.id)
    assert {name: getattr(found, name) for name in choices} == choices
    assert found.tools_off == ("a__x", "b") and found.metadata == {"k": [None, ""]}
    assert found.auto_compress is False
    assert sessions.update(made.id, auto_compress=None, threshold=None).auto_compress is None


def test_a_change_that_cannot_be_is_refused_whole(sessions):
    made = sessions.create("kept")
    with pytest.raises(InputError):
        sessions.update(made.id, title="lost", head="x")
    assert sessions.get(made.id) == made
    with pytest.raises(NotFoundError):
        sessions.update("nowhere", title="x")


def test_deleting_takes_everything_and_nothing_of_others(sessions):
    keeps, goes = sessions.create("keeps"), sessions.create("goes")
    for session in (keeps, goes):
        message = say(sessions, session, "words to find", "assistant", run=f"r-{session.id}")
        sessions.add_run(Run(id=f"r-{session.id}", session=session.id))
        given = {"name": "s__t", "server": "s", "tool": "t", "arguments": {}}
        sessions.put_call(
            Invocation(run=f"r-{session.id}", call_id="c", session=session.id, message=message.id, **given)
        )
        sessions.add_snapshot(
            session.id, Snapshot(id=session.id, text="s", cutoff=message.id, tokens=1, created_at=1.0)
        )
    before = {table: sessions.store.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}
    sessions.delete(goes.id)
    after = {table: sessions.store.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}
    assert set(before.values()) == {2} and set(after.values()) == {1}
    assert [hit.session for hit in sessions.search("words")] == [keeps.id]
    assert [run.session for run in sessions.unfinished_runs()] == [keeps.id]
    with pytest.raises(NotFoundError):
        sessions.delete(goes.id)
    with pytest.raises(NotFoundError):
        say(sessions, goes, "too late")


def test_a_deletion_that_was_cut_short_is_ended_by_the_sweep(sessions):
    made = sessions.create("half gone")
    say(sessions, made, "half gone too")
    sessions.store.write(
        lambda tx: conversations.change(tx, "chat_session", {"presence": "going"}, "id = ?", (made.id,))
    )
    assert sessions.list() == [] and sessions.search("half") == []
    assert (sessions.sweep(), sessions.sweep()) == (1, 0)
    assert sessions.store.query("SELECT count(*) FROM chat_message") == [(0,)]


def test_a_long_session_goes_in_slices_with_turns_for_others_between(sessions, monkeypatch):
    monkeypatch.setattr("checkrein.doors.chat.sessions.SLICE", 7)
    made = sessions.create()
    for number in range(20):
        say(sessions, made, f"word{number}")
    sessions.delete(made.id)
    assert sessions.store.query("SELECT count(*) FROM chat_words") == [(0,)]


def test_all_words_must_be_in_the_same_message_and_the_last_is_a_beginning(sessions):
    made = sessions.create("Trip")
    say(sessions, made, "The red fox jumps")
    say(sessions, made, "A red house", "assistant")
    assert texts(sessions.search("red")) == ["A red house", "The red fox jumps"]
    assert texts(sessions.search("fox red")) == ["The red fox jumps"]
    assert texts(sessions.search("red hou")) == ["A red house"]
    assert sessions.search("hou red") == [] and sessions.search("fox house") == []


def test_a_hit_says_where_it_is_and_what_matched(sessions):
    made = sessions.create("Fox hunting")
    message = say(sessions, made, "Über den Fuchs: FOX!")
    title, found = sessions.search("fox")
    assert (title.session, title.message, title.title) == (made.id, "", "Fox hunting")
    assert title.snippet == ((True, "Fox"), (False, " hunting"))
    assert (found.message, found.role, found.at) == (message.id, "user", message.created_at)
    assert found.snippet == ((False, "Über den Fuchs: "), (True, "FOX"), (False, "!"))


def test_words_are_found_without_accents_and_in_scripts_without_spaces(sessions):
    made = sessions.create("x")
    for text in (
        "Café Zürich",
        "東京都に行きました",
        "学校에서 공부했다",
        "서울에서 만나요",
        "我喜欢北京烤鸭",
    ):
        say(sessions, made, text)
    wanted = {
        "cafe": 0,
        "ZURICH": 0,
        "東京": 1,
        "京都": 1,
        "行き": 1,
        "공부": 2,
        "서울": 3,
        "北京": 4,
        "烤鸭": 4,
    }
    shown = ("Café Zürich", "東京都に行きました", "学校에서 공부했다", "서울에서 만나요", "我喜欢北京烤鸭")
    for word, number in wanted.items():
        assert texts(sessions.search(word)) == [shown[number]], word
    # The pairs are there, but not beside each other.
    assert sessions.search("東京行き") == []


def test_reasoning_and_metadata_are_not_searched_tools_and_results_are(sessions):
    made = sessions.create("x")
    parts = [
        Part(kind="reasoning", text="secretthought"),
        Part(kind="metadata", data={"a": "hiddenfact"}),
        Part(kind="tool_invocation", tool_call_id="c", tool_name="files__read", data={"path": "argument"}),
    ]
    sessions.add_message(made.id, "assistant", parts)
    result = {"content": [{"type": "text", "text": "resulttext"}, {"type": "image", "data": "cGljdHVyZQ"}]}
    sessions.add_message(made.id, "tool", [Part(kind="tool_result", tool_call_id="c", data=result)])
    assert not any(sessions.search(word) for word in ("secretthought", "hiddenfact", "cGljdHVyZQ"))
    assert len(sessions.search("files__read")) == 1 and len(sessions.search("resulttext")) == 1


def test_the_index_follows_rewrites_deletions_and_titles(sessions):
    made = sessions.create("first title")
    message = say(sessions, made, "alpha")
    sessions.rewrite(message.id, [Part(text="beta")])
    assert not sessions.search("alpha") and sessions.search("beta")
    sessions.delete_message(made.id, message.id)
    assert not sessions.search("beta")
    sessions.rewrite(message.id, [Part(text="gamma")])
    assert not sessions.search("gamma")
    sessions.update(made.id, title="second name")
    assert not sessions.search("title") and sessions.search("name")


def test_a_message_is_found_once_it_does_not_stream_any_more(sessions):
    made = sessions.create("x")
    message = say(sessions, made, "gro", "assistant", state="streaming")
    sessions.rewrite(message.id, [Part(text="growing")])
    assert sessions.search("gro") == []
    sessions.rewrite(message.id, [Part(text="growing tall")], state="aborted")
    assert texts(sessions.search("tall")) == ["growing tall"]


def test_archived_ones_are_found_unless_they_are_not_wanted(sessions):
    made = sessions.create("old stuff")
    say(sessions, made, "old words")
    sessions.update(made.id, archived=True)
    assert len(sessions.search("old")) == 2 and sessions.search("old", archived=False) == []


def test_titles_leave_room_for_messages(sessions):
    for _ in range(10):
        made = sessions.create("same")
    say(sessions, made, "the same")
    hits = sessions.search("same", limit=4)
    assert [bool(hit.message) for hit in hits] == [False, False, True]
    assert sessions.search("same", limit=0) == []


@pytest.mark.parametrize(
    "query", ["", "   ", "!?", '"', "*", "- :", "()", "^", "「」", "\x00", "\ud800", "🙂"]
)
def test_a_query_without_words_finds_nothing(sessions, query):
    say(sessions, sessions.create(), 'something * " - : 🙂')
    assert sessions.search(query) == []


@pytest.mark.parametrize(
    "query", ["NEAR", "AND", "OR NOT", "words:x", "a-b", 'say "x', "x*", "NEAR(a b)", "{x}"]
)
def test_what_a_person_types_is_never_query_syntax(sessions, query):
    made = sessions.create("t")
    say(sessions, made, "unrelated")
    assert sessions.search(query) == []
    say(sessions, made, f"so {query} it is")
    assert len(sessions.search(query)) == 1


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=40))
def test_any_text_is_kept_and_may_be_asked(sessions, text):
    made = sessions.create(f"t{text}")
    message = say(sessions, made, f"x{text}")
    assert sessions.message(message.id).parts[0].text == f"x{text}"
    marked = [piece for hit in sessions.search(f"x{text}") for match, piece in hit.snippet if match]
    assert all(marked)
    sessions.delete(made.id)


def test_snapshots_are_kept_and_the_context_begins_with_the_one_in_force(sessions):
    made = sessions.create()
    said = [say(sessions, made, f"m{number}") for number in range(4)]
    for number, cutoff in enumerate((said[0], said[1])):
        taken = Snapshot(
            id=f"s{number}", text=f"sum{number}", cutoff=cutoff.id, tokens=3, created_at=float(number)
        )
        sessions.add_snapshot(made.id, taken)
    assert [each.text for each in sessions.snapshots(made.id)] == ["sum0", "sum1"]
    summary, *rest = sessions.build_context(made.id)
    assert summary.summary and "sum1" in summary.parts[0].text
    assert [each.id for each in rest] == [each.id for each in said[2:]]
    # On a branch without its cutoff it stands for nothing.
    other = say(sessions, made, "elsewhere", parent="")
    assert sessions.build_context(made.id) == (sessions.message(other.id),)


def test_searching_while_others_write_is_safe(sessions):
    made, faults = sessions.create(), []

    def write():
        for number in range(40):
            say(sessions, made, f"needle {number}")

    def look():
        try:
            for _ in range(40):
                sessions.search("needle")
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for work in (write, look, write, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and len(sessions.search("needle", limit=500)) == 80
