"""What a program chose for a tool is what it hears."""

import pytest

from checkrein import Denied, Suspended
from checkrein.doors.library.denial import Refusal


@pytest.fixture
def gate(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    return room.open()


def test_a_result_can_be_a_failure(gate, room):
    look = gate.wrap(lambda ok: {"isError": not ok}, name="look", failed=lambda found: found["isError"])
    look(True)
    look(False)
    assert [each.result for each in room.entries()] == ["success", "failure"]
    gate.wrap(lambda: 3, name="look", failed=lambda found: found["isError"])()
    assert room.last().result == "failure"


def test_the_same_wait_can_be_returned_instead_of_raised(room):
    gate = room.open(asks="return")
    found = gate.wrap(lambda n: n, name="pick")(1)
    assert isinstance(found, Suspended) and found.entry == gate.pending()[0]["id"]
    assert found.pending.verdict.word == "ask" and "Checkrein asks" in str(found)


def test_a_refusal_can_be_a_result_the_model_reads(room):
    gate = room.open(denials="return")
    shell = gate.wrap(lambda command: "ran", name="Bash")
    said = shell("rm -rf /")
    assert isinstance(said, Refusal) and said.startswith("Checkrein refused this call.")
    assert said.denied.verdict.word == "deny"
    raising = gate.wrap(lambda command: "ran", name="Bash", denials="raise")
    with pytest.raises(Denied):
        raising("rm -rf /")
