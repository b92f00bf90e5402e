"""A yes is used up once, by the call it was given to."""

import pytest

from authority.program import CALL, approved, call, decided
from checkrein.authority import taken
from checkrein.authority.wish import Wish
from checkrein.core.redemption import get_entry
from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir


def take(pipeline, entry, given=CALL, **more):
    return taken.take(pipeline, entry, given, "building", **more)


@pytest.mark.invariant("an approved call runs at most once, unless running it twice does no harm")
def test_a_yes_is_taken_once_by_the_exact_call(pipeline):
    entry = approved(pipeline)
    for other in (call(arguments={"n": 2}), call(session="t")):
        assert take(pipeline, entry, other).refused.verdict.stage == "state"
    assert take(pipeline, entry).arguments == {"n": 1}
    assert take(pipeline, entry).refused.verdict.reasons[0].text.startswith("This approval was used before")


def test_what_nobody_said_yes_to_is_not_taken(pipeline):
    assert take(pipeline, decided(pipeline).entry).refused is not None
    assert take(pipeline, decided(pipeline, wish=Wish(let="x")).entry).refused is not None
    assert take(pipeline, "nothing").refused is not None


@pytest.mark.invariant("a program's call runs with the arguments that were approved, once")
def test_edited_arguments_are_heard_also_after_a_restart(pipeline, clock):
    edited = {"n": 5}
    assert take(pipeline, approved(pipeline, edited=edited)).arguments == edited
    entry = approved(pipeline, edited=edited)
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert take(later, entry).arguments == edited
    assert take(later, entry).refused is not None


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
def test_edited_arguments_that_cannot_be_read_end_the_approval(pipeline, clock):
    entry = approved(pipeline, edited={"n": 5})
    (state_dir() / "questions.key").unlink()
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    refused = take(later, entry).refused.verdict
    assert refused.stage == "state" and "cannot be read any more" in refused.reasons[0].text
    found = get_entry(later.store, entry)
    assert (found.result, found.evidence) == ("cancelled", "arguments")
    assert take(later, entry).refused is not None


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
def test_arguments_nobody_approved_do_not_run(pipeline):
    """The store holds another edit of the same question than the one on the record."""
    entry, other = approved(pipeline, edited={"n": 5}), approved(pipeline, edited={"n": 6})
    sealed = (
        "UPDATE question SET sealed_edit = (SELECT sealed_edit FROM question WHERE entry = ?) WHERE entry = ?"
    )
    pipeline.store.write(lambda tx: tx.execute(sealed, (other, entry)))
    assert take(pipeline, entry).refused.verdict.stage == "state"
    assert take(pipeline, other).arguments == {"n": 6}


@pytest.mark.invariant("a deny that came after the approval outranks it")
def test_the_policy_of_the_moment_has_the_last_word(pipeline, user_settings):
    entry = approved(pipeline)
    user_settings('[[rules]]\naction = "deny"\ntool = "pick"\n')
    assert take(pipeline, entry).refused.verdict.stage == "rules"
    found = get_entry(pipeline.store, entry)
    assert (found.result, found.evidence) == ("cancelled", "policy")


@pytest.mark.invariant("an approved call runs at most once, unless running it twice does no harm")
def test_only_what_may_run_twice_is_taken_twice_and_only_while_its_fate_is_unknown(pipeline):
    entry = approved(pipeline)
    assert take(pipeline, entry).arguments
    assert take(pipeline, entry).refused is not None
    assert take(pipeline, entry, again=True).arguments
    pipeline.finish(entry, "success")
    assert "success" in take(pipeline, entry, again=True).refused.verdict.reasons[0].text


def test_what_became_of_a_call_taken_twice_is_on_the_record(pipeline):
    entry = approved(pipeline)
    assert take(pipeline, entry).arguments
    pipeline.finish(entry, "unknown", evidence="the program ended")
    assert take(pipeline, entry, again=True).arguments
    pipeline.finish(entry, "success")
    found = get_entry(pipeline.store, entry)
    assert (found.result, found.status) == ("success", "completed")


@pytest.mark.invariant("nothing is learned from a call that nobody let run")
def test_what_nobody_let_run_is_not_reported_as_run(pipeline):
    entry = decided(pipeline).entry
    for outcome in ("success", "failure"):
        with pytest.raises(InputError, match="may not have run"):
            taken.may_report(pipeline, entry, outcome)
    taken.may_report(pipeline, entry, "cancelled")
    entry = approved(pipeline, call(arguments={"n": 2}))
    with pytest.raises(InputError, match="may not have run"):
        taken.may_report(pipeline, entry, "success")
    assert pipeline.claim(entry)
    taken.may_report(pipeline, entry, "success")
