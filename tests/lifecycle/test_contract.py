"""The approval lifecycle, case by case, at the doors that are quick to open."""

import pytest

from lifecycle.cases import CASES
from lifecycle.contract import at, play
from lifecycle.tables import CANNOT

# Of scripts, whose sandbox takes long to open, what could run twice or as nobody approved it.
SCRIPTS = (
    "a_yes_runs_the_call_once",
    "an_edit_while_its_caller_is_away_runs_when_it_is_back",
    "a_deny_that_comes_after_the_yes_outranks_it",
    "a_tool_that_changed_after_the_yes_is_not_called",
    "killed_with_the_claim_on_the_record_nothing_runs_any_more",
    "killed_while_the_edited_call_ran_it_does_not_run_again",
)


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
@pytest.mark.invariant("an approval is for the tool definition it was given for")
@pytest.mark.invariant("approved arguments that do not fit the tool are not sent to it")
@pytest.mark.invariant("a deny that came after the approval outranks it")
@pytest.mark.invariant("an approval that is not used has an outcome, and says why")
@pytest.mark.invariant("an approved call runs at most once, unless running it twice does no harm")
@pytest.mark.invariant("no approved call stays open for ever")
@pytest.mark.invariant("an approval ends with the tool it was given for")
@pytest.mark.invariant("a call of a conversation that a person approved is carried out at most once")
@pytest.mark.parametrize(("door", "name"), at("hooks", "gateway", "chat", "library"))
def test_a_case_ends_as_it_should(stage, door, name):
    play(stage(door), CASES[name])


@pytest.mark.invariant(
    "a script's approved call runs at most once, whatever is resumed, sent again or killed"
)
@pytest.mark.parametrize(("door", "name"), at("eval", names=SCRIPTS))
def test_a_scripts_case_ends_as_it_should(stage, door, name):
    play(stage(door), CASES[name])


def test_the_table_names_only_cases():
    assert {name for door in CANNOT.values() for name in door} <= set(CASES)
