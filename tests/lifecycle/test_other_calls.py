"""An approval redeemed for a call that is not quite the one that was asked about."""

import msgspec
import pytest

from checkrein.call import ToolCall
from checkrein.core.redemption import OTHER_CALL, Approval, Rejected, redeem
from checkrein.ledger.entries import fold
from checkrein.store import records

CALL = ToolCall(
    tool="put",
    server="srv",
    arguments={"text": "a"},
    door="gateway",
    agent="tester",
    user="ada",
    session="s-1",
    project="/p",
    cwd="/p",
    call_id="c-1",
)
OTHERS = {
    "tool": "take",
    "server": "other",
    "arguments": {"text": "b"},
    "door": "chat",
    "agent": "another",
    "user": "eve",
    "session": "s-2",
    "project": "/q",
    "cwd": "/q",
    "call_id": "c-2",
}


@pytest.mark.invariant("an approval is for one call, as it was asked about")
@pytest.mark.parametrize("field", OTHERS)
def test_another_call_is_refused_and_the_approved_one_still_runs(pipeline, field):
    decided = pipeline.decide(CALL, asking=True)
    assert decided.asked
    pipeline.answer(decided.entry, "approved", actor="ada", channel="console")
    other = msgspec.structs.replace(CALL, **{field: OTHERS[field]})
    found = redeem(pipeline, Approval(decided.entry, other))
    assert isinstance(found, Rejected)
    assert (found.stage, found.reason, found.used) == ("state", OTHER_CALL, False)
    refusal = fold(records.of_entries(pipeline.store, [found.decided.entry]))[0]
    assert (refusal.verdict, refusal.stage) == ("deny", "state")
    assert redeem(pipeline, Approval(decided.entry, CALL)) == CALL


def test_a_question_without_an_answer_is_no_approval(pipeline):
    decided = pipeline.decide(CALL, asking=True)
    assert isinstance(redeem(pipeline, Approval(decided.entry, CALL)), Rejected)
    pipeline.answer(decided.entry, "denied", actor="ada", channel="console")
    assert isinstance(redeem(pipeline, Approval(decided.entry, CALL)), Rejected)
    assert isinstance(redeem(pipeline, Approval("nothing", CALL)), Rejected)
