"""A no, by policy or by a person, in words for the model."""

import pytest

from checkrein import Denied
from checkrein.call import ToolCall
from checkrein.core.approvals import Settled
from checkrein.doors.library.refused import said_no
from checkrein.policy import UNKNOWN_RISK


def test_a_no_and_its_reason_reach_the_model(room, later):
    gate = room.open()
    coming = later(gate.wrap(lambda: 1, name="drop"))
    gate.answer(room.question()["id"], "no: keep it")
    with pytest.raises(Denied, match="They say: keep it") as denied:
        coming()
    assert (denied.value.state, denied.value.reason) == ("denied", "keep it")
    assert denied.value.verdict.risk.category.name == "high"


def test_nobody_in_time_is_a_no(room):
    gate = room.open(settings=["approval.timeout_seconds=1"])
    with pytest.raises(Denied, match="Nobody answered in time"):
        gate.wrap(lambda: 1, name="pick")()
    assert (room.last().answer, room.last().result) == ("expired", "timeout")


def test_a_question_that_was_withdrawn_is_a_no_of_unknown_risk():
    denied = said_no(ToolCall(tool="pick"), "e1", Settled("cancelled"), None)
    assert (denied.state, denied.entry, denied.reason) == ("cancelled", "e1", "The question was withdrawn.")
    assert (denied.verdict.word, denied.verdict.risk) == ("deny", UNKNOWN_RISK)
