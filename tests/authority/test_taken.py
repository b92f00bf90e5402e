"""A yes is used up once, by the call it was given to."""

import pytest

from authority.program import CALL, approved, call, decided
from checkrein.authority import taken
from checkrein.authority.wish import Wish
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
    assert take(pipeline, entry).refused.verdict.reasons[0].text.startswith("This yes was used before")


def test_what_nobody_said_yes_to_is_not_taken(pipeline):
    assert take(pipeline, decided(pipeline).entry).refused is not None
    assert take(pipeline, decided(pipeline, wish=Wish(let="x")).entry).refused is not None
    assert take(pipeline, "nothing").refused is not None


@pytest.mark.invariant("arguments that come from outside run only where they are the ones that were approved")
def test_edited_arguments_are_heard_or_proven(pipeline, clock):
    edited = {"n": 5}
    assert take(pipeline, approved(pipeline, edited=edited)).arguments == edited
    entry = approved(pipeline, edited=edited)
    # After a restart nobody has heard them.
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert take(later, entry).refused is not None
    assert take(later, entry, edited=edited).refused is not None
    data = {"argument_hash": call(arguments=edited).argument_hash}
    later.store.write(lambda tx: later.ledger.append(tx, "edited", data, entry=entry))
    assert take(later, entry, edited={"n": 6}).refused is not None
    assert take(later, entry, edited=edited).arguments == edited


@pytest.mark.invariant("what the policy of this moment refuses does not run, whatever was said before")
def test_the_policy_of_the_moment_has_the_last_word(pipeline, user_settings):
    entry = approved(pipeline)
    user_settings('[[rules]]\naction = "deny"\ntool = "pick"\n')
    assert take(pipeline, entry).refused.verdict.stage == "rules"
    assert taken.entry_of(pipeline, entry).result == "cancelled"


@pytest.mark.invariant("an approved call runs at most once, unless running it twice does no harm")
def test_only_what_may_run_twice_is_taken_twice_and_only_while_its_fate_is_unknown(pipeline):
    entry = approved(pipeline)
    assert take(pipeline, entry).arguments
    assert take(pipeline, entry).refused is not None
    assert take(pipeline, entry, again=True).arguments
    pipeline.finish(entry, "success")
    assert "success" in take(pipeline, entry, again=True).refused.verdict.reasons[0].text
