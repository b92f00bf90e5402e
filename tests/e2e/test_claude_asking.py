"""Nobody sits before the agent: its questions go to the inbox, and wait there for a person or their end."""

import json

import pytest

from e2e.clients.claude import bash, read
from e2e.clients.house import PROGRAM
from e2e.clients.terminal import Terminal
from patience import until

MADE, OTHER = "touch made", "touch other"


@pytest.fixture
def made(house):
    return house.project / "made"


def test_nobody_in_reach_is_a_no_that_says_how_to_be_reached(claude, house, made):
    ran = claude.run(bash(MADE))
    assert "nobody can be reached" in ran[0].told and "checkrein inbox" in ran[0].told
    found = house.entry(ran[0].id)
    assert (found["verdict"], found["answer"], found["result"]) == ("ask", "cancelled", "cancelled")
    assert not made.exists()
    assert house.json("inbox") == []


def test_an_approved_call_runs(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE))
        question = house.question()
        assert (question["tool"], question["input"]["command"]) == ("Bash", MADE)
        assert not made.exists()
        house.checkrein("approve", question["id"])
        ran = going.result()
    assert not ran[0].failed, ran[0].told
    assert made.exists()
    found = house.entry(ran[0].id)
    assert (found["answer"], found["channel"], found["result"]) == ("approved", "terminal", "success")
    assert found["actor"]
    assert house.verifies()


def test_answers_typed_into_the_inbox_count(claude, house, made):
    pytest.importorskip("pyte", reason="reading the inbox's screen needs pyte")
    with Terminal([PROGRAM, "inbox"], env=house.environment, cwd=house.project) as inbox:
        inbox.shows("Waiting for questions")
        going = claude.begin(bash(MADE), bash(OTHER))
        first = house.question()["id"]
        inbox.shows(first, MADE, "medium risk")
        inbox.type(f"a {first}\n")
        second = until(lambda: [each["id"] for each in house.json("inbox") if each["id"] != first])[0]
        inbox.shows(second, OTHER)
        inbox.type(f"d {second} one file is enough\n")
        ran = going.result()
        inbox.shows("one file is enough")
    assert made.exists() and not (house.project / "other").exists()
    assert "one file is enough" in ran[1].told
    assert [house.entry(used.id)["answer"] for used in ran.tools] == ["approved", "denied"]


def test_a_denied_call_does_not_run_and_the_model_reads_why(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE))
        house.checkrein("deny", house.question()["id"], "--message", "use the docs folder instead")
        ran = going.result()
    assert ran[0].failed and "use the docs folder instead" in ran[0].told
    assert not made.exists()
    assert house.entry(ran[0].id)["answer"] == "denied"


def test_an_edited_call_runs_as_edited(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE))
        edited = json.dumps({"command": OTHER, "description": "another file"})
        house.checkrein("approve", house.question()["id"], "--edit", edited)
        ran = going.result()
    assert not ran[0].failed, ran[0].told
    assert (house.project / "other").exists() and not made.exists()
    found = house.entry(ran[0].id)
    (answered,) = house.records("answered")
    assert answered["data"]["edited"]["command"] == OTHER
    assert found["result"] == "success"


def test_an_edit_that_would_be_refused_is_refused(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE))
        question = house.question()["id"]
        worse = json.dumps({"command": "rm -rf /", "description": "worse"})
        house.checkrein("approve", question, "--edit", worse, code=2)
        assert [each["id"] for each in house.json("inbox")] == [question]
        house.checkrein("deny", question)
        going.result()
    assert not made.exists()


def test_a_yes_for_the_session_is_not_asked_for_again(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE), bash(MADE), bash(OTHER))
        house.checkrein("approve", house.question()["id"], "--for", "session")
        # The same call ran again unasked; another one is a question of its own.
        second = until(lambda: [each for each in house.json("inbox") if each["input"]["command"] == OTHER])
        house.checkrein("deny", second[0]["id"])
        ran = going.result()
    assert [house.entry(used.id)["verdict"] for used in ran.tools] == ["ask", "allow", "ask"]
    assert made.exists() and not (house.project / "other").exists()


def test_a_yes_for_the_session_ends_with_the_session(claude, house):
    with house.inbox():
        going = claude.begin(bash(MADE))
        house.checkrein("approve", house.question()["id"], "--for", "session")
        going.result()
    ran = claude.run(bash(MADE))
    assert house.entry(ran[0].id)["verdict"] == "ask"
    assert ran[0].failed


def test_a_question_nobody_answers_in_time_is_a_no(claude, house, made):
    house.settings("[approval]\ntimeout_seconds = 2\n")
    with house.inbox():
        ran = claude.run(bash(MADE))
    assert ran[0].failed and "Nobody answered in time" in ran[0].told
    assert house.entry(ran[0].id)["answer"] == "expired"
    assert not made.exists()


def test_a_yes_that_comes_too_late_is_heard_by_nobody(claude, house, made):
    house.settings("[approval]\ntimeout_seconds = 2\n")
    with house.inbox():
        going = claude.begin(bash(MADE))
        question = house.question()["id"]
        going.result()
        house.checkrein("approve", question, code=2)
    assert not made.exists()


def test_a_no_made_meanwhile_outranks_the_yes(claude, house, made):
    with house.inbox():
        going = claude.begin(bash(MADE))
        question = house.question()["id"]
        house.checkrein("rules", "add", "deny", "--tool", "Bash", "--reason", "not today")
        house.checkrein("approve", question, code=1)
        ran = going.result()
    assert ran[0].failed and "not today" in ran[0].told
    assert not made.exists()


def test_a_question_survives_the_end_of_the_server(claude, house, made):
    """The hook that waits finds the next server, its question still stands, and the answer counts."""
    with house.inbox():
        going = claude.begin(bash(MADE), read(house.project / "README.md"))
        question = house.question()["id"]
        house.checkrein("down")
        until(lambda: house.json("up")["reachable"])
        assert [each["id"] for each in house.json("inbox")] == [question]
        assert not made.exists()
        house.checkrein("approve", question)
        ran = going.result()
    assert not ran[0].failed, ran[0].told
    assert made.exists()
    found = house.entry(ran[0].id)
    assert (found["answer"], found["result"]) == ("approved", "success")
    assert house.verifies()
