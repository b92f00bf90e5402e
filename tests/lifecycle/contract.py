"""What is asserted of every case at every door: what ran, what was heard, the record, the daily lines."""

import pytest

from checkrein.core.lifecycle import State
from lifecycle.cases import ANY, CASES
from lifecycle.drivers import Cannot
from lifecycle.tables import CANNOT

# The daily line's status, by how the call ended.
STATUS = {
    (State.finished, "success"): "completed",
    (State.finished, "cancelled"): "error",
    (State.finished, "failure"): "error",
    (State.denied, "denied"): "denied",
    (State.answered, "cancelled"): "denied",
    (State.expired, "timeout"): "denied",
    (State.cancelled, "cancelled"): "denied",
    (State.unknown, "unknown"): "pending",
    (State.refused, "denied"): "denied",
}


def at(*doors, names=tuple(CASES)):
    """Cases at every one of these doors; all where none are named."""
    return [pytest.param(door, name, id=f"{door}-{name}") for door in doors for name in names]


def play(scene, case):
    """Play a case to its end, and compare everything there is to see with what it expects."""
    door, world = scene.driver.name, scene.world
    if (why := CANNOT[door].get(case.name)) is not None:
        with pytest.raises(Cannot) as cannot:
            case.play(scene)
        assert str(cannot.value) == why
        return
    expected, heard = case.at(door), case.play(scene)
    scene.driver.close()
    ends = world.ended()
    assert world.ran == list(expected.ran)
    words = expected.heard if isinstance(expected.heard, tuple) else (expected.heard,)
    assert heard in words, ends
    (found,) = [each for each in ends if each.entry.id == (scene.entry or ends[0].entry.id)]
    seen = found.answer, found.state, found.result
    assert seen == (expected.answer, expected.state, expected.result), found
    if expected.evidence is not ANY:
        assert found.evidence == expected.evidence, found
    check(ends)


def check(ends):
    """What holds of every call on the record, whatever the case was about."""
    for each in ends:
        under_way = each.state is State.started
        assert each.over or under_way, each
        if not under_way:
            # One daily line for every call, and it says how the call ended.
            assert each.lines == ((STATUS[each.state, each.result], each.result),), each
