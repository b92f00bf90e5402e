import threading

import pytest

from checkrein.store.questions import (
    Question,
    about,
    add_question,
    answered_about,
    asked_about,
    asked_since,
    count_of,
    get_question,
    settle,
    waiting,
)


@pytest.fixture
def ask(store):
    def put(entry, **more):
        fields = {"session": "s", "project": "/p", "binding": "b", "asked_at": 1.0, "expires_at": 9.0} | more
        question = Question(entry=entry, **fields)
        store.write(lambda tx: add_question(tx, question))
        return question

    return put


def say(store, entry, state="approved", actor="ada"):
    return store.write(
        lambda tx: settle(tx, entry, state, now=2.0, actor=actor, channel="terminal", message="ok")
    )


def test_a_question_waits_until_it_is_answered(store, ask):
    asked = ask("e1")
    assert get_question(store, "e1") == asked
    assert waiting(store) == waiting(store, "s") == [asked]
    assert waiting(store, "other") == []
    assert (count_of(store, "s"), count_of(store, "other")) == (1, 0)
    assert say(store, "e1", "denied")
    found = get_question(store, "e1")
    assert (found.state, found.answered_at, found.actor) == ("denied", 2.0, "ada")
    assert (found.channel, found.message) == ("terminal", "ok")
    assert waiting(store) == [] and count_of(store, "s") == 0


def test_the_first_answer_stands(store, ask):
    ask("e1")
    assert say(store, "e1", "denied")
    assert not say(store, "e1", "approved", "eve")
    assert get_question(store, "e1").state == "denied"
    assert not say(store, "never asked")


def test_of_many_answers_at_once_one_counts(store, ask):
    ask("e1")
    won = []
    threads = [
        threading.Thread(target=lambda name=name: won.append((say(store, "e1", actor=name), name)))
        for name in "abcdef"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((_, winner),) = [each for each in won if each[0]]
    assert get_question(store, "e1").actor == winner


def test_no_question_is_asked_twice(store, ask):
    ask("e1")
    with pytest.raises(Exception, match="UNIQUE"):
        ask("e1")


def test_questions_about_exactly_one_call_oldest_first(store, ask):
    ask("e2", asked_at=2.0)
    ask("e1", asked_at=1.0)
    ask("e3", binding="other")
    assert [each.entry for each in asked_about(store, "b")] == ["e1", "e2"]
    say(store, "e1")
    assert [each.entry for each in asked_about(store, "b")] == ["e2"]
    assert [each.entry for each in answered_about(store, "b", 0.0)] == ["e1"]
    assert [each.entry for each in answered_about(store, "b", 1.9)] == ["e1"]
    assert answered_about(store, "b", 2.0) == []


def test_everything_about_a_call_answered_or_not(store, ask):
    asked, _ = ask("e1"), ask("e2", binding="other")
    later = ask("e3", asked_at=3.0)
    say(store, "e1", "denied")
    assert [(each.entry, each.state) for each in about(store, "b")] == [("e1", "denied"), ("e3", "asked")]
    assert about(store, "b")[1] == later
    assert about(store, "nothing") == []
    assert asked.state == "asked"


def test_what_was_asked_about_since(store, ask):
    for number, binding in enumerate(("b1", "b2", "b2")):
        ask(entry=f"e{number}", binding=binding, asked_at=float(number))
    assert asked_since(store, -1.0) == {"b1", "b2"}
    assert asked_since(store, 0.0) == {"b2"}
    assert asked_since(store, 9.0) == frozenset()
