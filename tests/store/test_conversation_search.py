"""The index of words: the newest first, and nothing of what was taken out."""

import pytest

from checkrein.store.conversation_search import TITLES, WORDS, find_messages, find_titles, index
from checkrein.store.conversations import change, insert

TEXTS = "title color provider model project system head tainted_by".split()
SAID = dict.fromkeys("provider model error run raw parent".split(), "")


@pytest.fixture
def talk(store):
    free = {"message_count": 0, "tools_off": "[]", "metadata": "{}", "created_at": 1.0, "updated_at": 1.0}
    state = {"state": "completed", "deleted": False, "summary": False, "created_at": 1.0}

    def work(tx):
        insert(tx, "chat_session", {"id": "s1", "presence": "here", **dict.fromkeys(TEXTS, ""), **free})
        for number in (1, 2, 3):
            named = {
                "number": number,
                "id": f"m{number}",
                "session": "s1",
                "sequence": number,
                "role": "user",
            }
            insert(tx, "chat_message", {**named, "parts": "[]", **SAID, **state})
            index(tx, WORDS, number, f"common only{number}")
        index(tx, TITLES, 1, "common title")

    store.write(work)
    return store


def found(store, query, **more):
    return [row[2] for row in find_messages(store, query, **{"limit": 9, "archived": True, **more})]


def test_the_newest_come_first_up_to_the_limit(talk):
    assert found(talk, '"common"') == ["m3", "m2", "m1"]
    assert found(talk, '"common"', limit=2) == ["m3", "m2"]
    assert found(talk, '"common" AND "only1" *') == ["m1"]
    assert [row[0] for row in find_titles(talk, '"titl" *', limit=9, archived=True)] == ["s1"]


def test_what_is_indexed_anew_or_taken_out_is_not_found_by_its_old_words(talk):
    talk.write(lambda tx: (index(tx, WORDS, 1, "other"), index(tx, WORDS, 2, ""), index(tx, TITLES, 1, "")))
    assert found(talk, '"only1"') == found(talk, '"only2"') == []
    assert found(talk, '"other"') == ["m1"] and found(talk, '"common"') == ["m3"]
    assert find_titles(talk, '"title"', limit=9, archived=True) == []
    talk.write(lambda tx: tx.execute(f"INSERT INTO {WORDS} ({WORDS}) VALUES ('integrity-check')"))


@pytest.mark.parametrize("changes", [{"archived_at": 1.0}, {"presence": "going"}])
def test_what_is_put_away_is_left_out(talk, changes):
    talk.write(lambda tx: change(tx, "chat_session", changes, "id = ?", ("s1",)))
    assert found(talk, '"common"', archived=False) == []
    assert find_titles(talk, '"common"', limit=9, archived=False) == []
    assert bool(found(talk, '"common"')) is ("archived_at" in changes)
