"""A store of version 0.1.0 with questions in it: it opens, and nothing is approved that nobody can read."""

import sqlite3

import pytest

from checkrein.core import approvals
from checkrein.core.lifecycle import State, state_of
from checkrein.core.redemption import Approval, Rejected, get_entry, redeem
from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.phases import set_phase
from checkrein.store.questions import unclaimed
from checkrein.store.sqlite import SqliteStore
from deciding import approve, asked, in_session

# What version 0.1.0 did not have.
BACK = """
DROP TRIGGER question_answered_once; DROP TRIGGER question_claimed_once; DROP INDEX question_unended;
ALTER TABLE question DROP COLUMN sealed_call; ALTER TABLE question DROP COLUMN sealed_edit;
ALTER TABLE question DROP COLUMN claimed_at; ALTER TABLE question DROP COLUMN ended_at;
DROP TABLE gateway_session; DROP TABLE used_state; PRAGMA user_version = 8;
"""


@pytest.fixture
def upgraded(pipeline, clock):
    """Opens the store again as version 0.1.0 left it."""
    pipeline.store.write(lambda tx: set_phase(tx, "building", 1.0))
    made = []

    def open_again():
        pipeline.store.close()
        (path,) = state_dir().glob("*.db")
        with sqlite3.connect(path) as connection:
            connection.executescript(BACK)
        connection.close()
        (state_dir() / "questions.key").unlink(missing_ok=True)
        made.append(Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock))
        return made[-1]

    yield open_again
    for each in made:
        each.close()


@pytest.mark.invariant("nobody says yes to a call that cannot be read and judged again")
def test_an_open_question_can_be_denied_or_expire_and_not_be_approved(pipeline, project, upgraded, clock):
    first, second = asked(pipeline, "make x", project), asked(pipeline, "make y", project)
    anew = upgraded()
    with pytest.raises(InputError, match="cannot be read"):
        approve(anew, first)
    assert anew.answer(first, "denied", actor="ada", channel="terminal") == "denied"
    clock.pass_days(1)
    approvals.sweep(anew)
    found = [state_of(get_entry(anew.store, each)) for each in (first, second)]
    assert found == [State.denied, State.expired]


def test_an_approval_that_was_used_stays_used(pipeline, project, upgraded):
    entry = asked(pipeline, "make x", project)
    approve(pipeline, entry)
    assert pipeline.claim(entry)
    anew = upgraded()
    assert unclaimed(anew.store) == []
    found = redeem(anew, Approval(entry, in_session("make x", project)))
    assert isinstance(found, Rejected) and found.used


def test_an_approval_that_was_not_used_yet_lets_its_call_run_once(pipeline, project, upgraded):
    entry = asked(pipeline, "make x", project)
    approve(pipeline, entry)
    anew, call = upgraded(), in_session("make x", project)
    assert redeem(anew, Approval(entry, call)) == call
    again = redeem(anew, Approval(entry, call))
    assert isinstance(again, Rejected) and again.used
