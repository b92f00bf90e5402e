"""What waits is kept by others, who may change it: nothing runs by what was not said."""

import json

import pytest

from checkrein import Denied, Suspended, suspend
from checkrein.errors import InputError


def shift(n: int):
    if not suspend("sure?"):
        return "left as it was"
    return f"shifted {n} to {suspend('where to?')}"


@pytest.fixture
def twice(room, user_settings):
    """A call that was told no, and waits for its second word; and what made it."""
    user_settings('[[rules]]\naction = "allow"\npattern = "*"\n')
    gate = room.open()
    tool = gate.wrap(shift)
    with pytest.raises(Suspended) as first:
        tool(5)
    with pytest.raises(Suspended) as second:
        gate.resume(first.value.pending, True)
    return gate, json.loads(second.value.pending.json())


def test_what_a_tool_was_told_before_cannot_be_changed(twice):
    gate, kept = twice
    assert kept["told"] == [True] and kept["step"] == 2
    for told in ([False], [True, "elsewhere"], [], [1]):
        with pytest.raises(Denied, match="does not wait to go on"):
            gate.resume({**kept, "told": told}, "here")
    assert gate.resume(kept, "here") == "shifted 5 to here"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "approval"},
        {"step": 1},
        {"entry": "0000000000000000"},
    ],
)
def test_a_pending_call_that_was_changed_goes_nowhere(twice, change):
    gate, kept = twice
    with pytest.raises((Denied, InputError)):
        gate.resume({**kept, **change}, "here")
    assert gate.resume(kept, "here") == "shifted 5 to here"


def test_a_question_made_into_a_pause_runs_nothing(room):
    gate = room.open(asks="raise")
    ran = []
    with pytest.raises(Suspended) as waiting:
        gate.wrap(lambda n: ran.append((n,)), name="pick")(1)
    kept = json.loads(waiting.value.pending.json())
    for step in (0, 1):
        with pytest.raises(Denied):
            gate.resume({**kept, "kind": "suspended", "step": step}, "go")
    assert ran == []
