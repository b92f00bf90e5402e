import pytest

from checkrein.console import questions
from checkrein.console.desk import Desk


@pytest.fixture
def desk(pipeline, agents):
    return Desk(pipeline, agents, None)


def test_a_card_has_everything_a_person_needs(desk, ask, project):
    waiter = ask("rm -rf build")
    [found] = questions.open_questions(desk)
    card = questions.card(desk, found)
    assert (card["id"], card["name"], card["agent"], card["project"]) == (
        waiter.entry,
        "Bash",
        "claude-code",
        project,
    )
    assert "deletes" in card["danger"]
    assert card["level"] == "red"
    assert card["reasons"]
    assert card["awaited"]
    assert all(0 <= score <= 1 for score in card["trust"].values())
    assert card["offers"][0]["what"] == "exact"
    assert card["expires"] > desk.now()


def test_the_same_call_asked_about_twice_stands_once(desk, ask):
    first = ask("make x")
    ask("make x")
    [found] = questions.open_questions(desk)
    assert (found.question.entry, found.others) == (first.entry, 1)


def test_what_became_of_a_question(desk, ask):
    waiter = ask()
    assert questions.settled(desk, waiter.entry) is None
    assert questions.settled(desk, "nothing") is None
    desk.ask("question.answer", id=waiter.entry, answer="denied", message="no")
    found = questions.settled(desk, waiter.entry)
    assert (found["answer"], found["message"], found["channel"]) == ("denied", "no", "console")
    assert [each["id"] for each in questions.lately_settled(desk, 5)] == [waiter.entry]


def test_what_ran_out_waits_no_more(desk, ask, clock):
    waiter = ask()
    clock.now += 10_000
    assert questions.open_questions(desk) == []
    assert questions.settled(desk, waiter.entry)["answer"] == "expired"


def test_a_question_whose_call_is_gone_offers_nothing_to_remember(desk, pipeline, call, ask):
    from checkrein.authority.phase import switch

    switch(pipeline, "building", "ada", "terminal")
    decided = pipeline.decide(call("make z"), asking=True, ask_reason="first")
    # As of a question that an older version asked.
    pipeline.store.write(lambda tx: tx.execute("UPDATE question SET sealed_call = ''"))
    [found] = questions.open_questions(desk)
    card = questions.card(desk, found)
    assert card["id"] == decided.entry
    assert card["offers"] == []
    assert not card["awaited"]
