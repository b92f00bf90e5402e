"""Rows of conversations: counted from what is there, hidden while they come or go."""

import pytest

from checkrein.store import conversation_search, conversations
from checkrein.store.conversations import (
    change,
    count_sessions,
    get_message,
    get_session,
    insert,
    last_sequence,
    list_sessions,
    messages_of,
    number_of,
    recount,
    remove_some,
    sessions_in,
    snapshots_of,
    statuses_of,
    tree_of,
)

TEXTS = "title color provider model project system head tainted_by".split()


def a_session(id="s1", presence="here", **more):
    texts = dict.fromkeys(TEXTS, "")
    free = {"message_count": 0, "tools_off": "[]", "metadata": "{}", "created_at": 1.0, "updated_at": 1.0}
    return {"id": id, "presence": presence, **texts, **free, **more}


def a_message(id="m1", sequence=1, **more):
    texts = dict.fromkeys("provider model error run raw parent".split(), "")
    state = {"state": "completed", "deleted": False, "summary": False, "created_at": float(sequence)}
    return {
        "id": id,
        "session": "s1",
        "sequence": sequence,
        "role": "user",
        "parts": "[]",
        **texts,
        **state,
        **more,
    }


@pytest.fixture
def filled(store):
    def work(tx):
        insert(tx, "chat_session", a_session())
        insert(tx, "chat_message", a_message())
        insert(tx, "chat_message", a_message("m2", 2, parent="m1"))
        insert(tx, "chat_message", a_message("m3", 3, parent="m1", deleted=True))

    store.write(work)
    return store


def test_messages_come_in_their_order_with_their_tree(filled):
    assert [row[0] for row in messages_of(filled, "s1")] == ["m1", "m2", "m3"]
    assert tree_of(filled, "s1") == [("m1", "", False), ("m2", "m1", False), ("m3", "m1", True)]
    assert (last_sequence(filled, "s1"), last_sequence(filled, "s2")) == (3, 0)
    session, number, row = get_message(filled, "m2")
    assert (session, number, row[0]) == ("s1", number_of(filled, "chat_message", "m2"), "m2")
    assert get_message(filled, "m9") is None and number_of(filled, "chat_message", "m9") is None


def test_two_messages_never_have_one_place(filled):
    with pytest.raises(Exception, match="UNIQUE"):
        filled.write(lambda tx: insert(tx, "chat_message", a_message("m4", 3)))


def test_counts_are_of_what_is_there(filled):
    filled.write(lambda tx: recount(tx, "s1"))
    row = dict(zip(conversations.SESSION, get_session(filled, "s1"), strict=True))
    assert (row["message_count"], row["last_message_at"]) == (2, 2.0)


@pytest.mark.parametrize("presence", ["coming", "going"])
def test_what_comes_or_goes_is_there_for_nobody(filled, presence):
    filled.write(lambda tx: change(tx, "chat_session", {"presence": presence}, "id = ?", ("s1",)))
    assert get_session(filled, "s1") is None and get_message(filled, "m1") is None
    assert count_sessions(filled, archived=False) == 0
    assert list_sessions(filled, archived=False, limit=9, offset=0) == []
    assert sessions_in(filled, "coming", "going") == ["s1"] and sessions_in(filled, "here") == []


def test_a_session_is_removed_in_slices_and_nothing_of_it_is_left(filled):
    filled.write(lambda tx: conversation_search.index(tx, "chat_words", 1, "some words"))
    done = [filled.write(lambda tx: remove_some(tx, "s1", 2)) for _ in range(3)]
    assert done == [False, False, True]
    for table in ("chat_session", "chat_message", "chat_words"):
        assert filled.query(f"SELECT count(*) FROM {table}") == [(0,)]
    assert filled.write(lambda tx: remove_some(tx, "s1", 2))


def test_a_session_without_calls_and_summaries_has_none(filled):
    assert statuses_of(filled, session="s1") == statuses_of(filled, message="m1") == {}
    assert snapshots_of(filled, "s1") == []
