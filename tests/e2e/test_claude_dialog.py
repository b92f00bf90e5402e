"""A person sits before the agent: its own dialog carries our question, and any terminal may answer it too."""

import time

import pytest

from e2e.clients.claude import bash
from patience import until

pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
MADE = "touch made"
DIALOG = "Do you want to proceed?"


@pytest.fixture
def made(house):
    return house.project / "made"


def test_the_dialog_shows_our_reason_and_its_yes_is_recorded(claude, house, made):
    with claude.sit(bash(MADE)) as screen:
        shown = screen.shows(DIALOG, "Checkrein asks")
        assert "medium risk" in shown and MADE in shown
        assert not made.exists()
        screen.type("1")
        until(made.exists)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["verdict"], found["answer"], found["channel"]) == ("ask", "approved", "agent")
    assert found["result"] == "success"
    assert house.verifies()


@pytest.mark.parametrize("mode", [(), ("--permission-mode", "bypassPermissions")], ids=["usual", "bypass"])
def test_a_mode_that_asks_less_still_shows_our_question(fearless, somebodys_house, mode):
    """The usual mode answers the client's own questions, and bypassing leaves them out; not ours."""
    made = somebodys_house.project / "made"
    with fearless.sit(bash(MADE), args=mode) as screen:
        screen.shows(DIALOG, "Checkrein asks")
        assert not made.exists()
        screen.type("1")
        until(made.exists)
        until(lambda: somebodys_house.entries()[0]["completed_at"])
    (found,) = somebodys_house.entries()
    assert (found["answer"], found["channel"]) == ("approved", "agent")


def test_a_no_in_the_dialog_is_a_persons_no_once_the_turn_is_over(claude, house, made):
    """Claude Code tells nobody about a no; the end of the next turn shows that the call never ran."""
    with claude.sit(bash(MADE)) as screen:
        screen.shows(DIALOG)
        screen.type("\x1b")
        screen.no_longer_shows(DIALOG)
        # A person's pace: the server notices within a second that the dialog's hook has gone.
        time.sleep(1.5)
        screen.type("something else")
        screen.shows("something else")
        screen.type("\r")
        until(lambda: house.json("inbox") == [])
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("denied", "agent", "denied")
    assert found["actor"]
    assert not made.exists()


def test_a_no_with_words_for_the_model_is_a_persons_no(claude, house, made):
    with claude.sit(bash(MADE)) as screen:
        screen.shows(DIALOG)
        screen.type("\x1b[B")
        screen.type("\t")
        screen.type("not today")
        screen.shows("not today")
        screen.type("\r")
        until(lambda: house.json("inbox") == [])
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("denied", "agent", "denied")
    assert not made.exists()


def test_what_a_person_types_while_the_call_runs_takes_no_yes_back(claude, house, made):
    # An earlier version took every prompt for the end of what the dialog had asked.
    with claude.sit(bash(f"sleep 5; {MADE}")) as screen:
        screen.shows(DIALOG)
        screen.type("1")
        screen.no_longer_shows(DIALOG)
        screen.type("go on")
        screen.shows("go on")
        screen.type("\r")
        until(made.exists)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("approved", "agent", "success")


def test_a_yes_from_outside_closes_the_dialog_and_runs_the_call(claude, house, made):
    with claude.sit(bash(MADE)) as screen:
        screen.shows(DIALOG)
        house.checkrein("approve", house.question()["id"])
        until(made.exists)
        screen.no_longer_shows(DIALOG)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("approved", "terminal", "success")


def test_a_no_from_outside_closes_the_dialog_and_reaches_the_model(claude, house, made):
    with claude.sit(bash(MADE)) as screen:
        screen.shows(DIALOG)
        house.checkrein("deny", house.question()["id"], "--message", "not on a Friday")
        screen.no_longer_shows(DIALOG)
        told = until(screen.told)
    assert "not on a Friday" in told[0]
    assert not made.exists()
    (found,) = house.entries()
    assert (found["answer"], found["channel"]) == ("denied", "terminal")


def test_the_status_line_shows_phase_and_trust(claude, house):
    with claude.sit(bash("ls")) as screen:
        screen.shows("checkrein building", "file_read 0.3")
        screen.type("/auditing")
        screen.shows("/auditing")
        screen.type("\r")
        screen.shows("checkrein auditing")
