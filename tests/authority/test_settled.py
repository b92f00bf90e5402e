"""What became of a question, and who is told."""

import pytest

from authority.program import CALL, call, decided
from checkrein.authority import settled
from checkrein.errors import InputError
from checkrein.store.questions import get_question
from patience import PATIENCE


@pytest.mark.invariant("an answer is given to nobody but the very call it was asked for")
def test_a_question_is_told_to_the_exact_call_only(pipeline):
    entry = decided(pipeline).entry
    assert settled.so_far(pipeline, entry, CALL) is None
    for other in (call(arguments={"n": 2}), call(session="t"), call(agent="other")):
        with pytest.raises(InputError, match="no question about this call"):
            settled.so_far(pipeline, entry, other)
        with pytest.raises(InputError):
            settled.withdraw(pipeline, entry, other, "")
    assert settled.wait(pipeline, entry, CALL, 0.0) is None
    assert pipeline.broker.call(entry) == CALL


def test_nobody_in_time_is_a_no(pipeline, clock):
    entry = decided(pipeline).entry
    clock.now += 301
    assert settled.wait(pipeline, entry, CALL, PATIENCE).state == "expired"


def test_questions_nobody_waits_for_run_out(pipeline, clock):
    left, awaited = decided(pipeline).entry, decided(pipeline, call(arguments={"n": 2}))
    clock.now += 301
    with pipeline.broker.awaiting(awaited.entry, CALL):
        settled.expire(pipeline)
    assert get_question(pipeline.store, left).state == "expired"
    assert get_question(pipeline.store, awaited.entry).state == "asked"


def test_a_question_is_withdrawn_once(pipeline):
    entry = decided(pipeline).entry
    settled.withdraw(pipeline, entry, CALL, "enough")
    settled.withdraw(pipeline, entry, CALL, "enough")
    assert (get_question(pipeline.store, entry).state, settled.so_far(pipeline, entry, CALL).message) == (
        "cancelled",
        "enough",
    )
