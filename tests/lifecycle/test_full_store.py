"""A store that is full at any write of a call's way: nothing runs unrecorded or twice, or stays open."""

from functools import partial

import pytest

from checkrein.core.lifecycle import State
from checkrein.errors import StoreFullError
from lifecycle.cases import ARGS
from lifecycle.contract import check
from patience import until

DOORS = ("hooks", "gateway", "chat", "library")
# More than a call's whole way takes; that it does is asserted below.
WRITES = 26
WORDS = {"result", "broken", "dropped", "unknown", "used", "expired", "cancelled", "denied"}


def _is_heard(world, caller, entry):
    return caller.done or world.pipeline.broker.is_awaited(entry)


def lived(scene):
    """A call's whole way, with a person who says yes again where that could not be written down."""
    world, driver = scene.world, scene.driver
    try:
        caller = driver.call(ARGS)
    except StoreFullError:
        return "broken"
    until(lambda: caller.done or world.questions())
    while not caller.done and (asked := world.questions()):
        entry = asked[0].entry
        until(partial(_is_heard, world, caller, entry))
        try:
            scene.answer(entry=entry)
        except StoreFullError:
            # Room is made before it is tried again.
            world.store.refuse()
    return caller.heard()


@pytest.mark.parametrize("number", range(1, WRITES + 1))
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_a_full_disk_costs_at_most_the_call(stage, door, lasting, number):
    """Full for one write, or from that one on until the call is over or a person is told."""
    scene = stage(door)
    store = scene.world.store
    store.refuse(*range(number, number + (1_000 if lasting else 1)))
    heard = lived(scene)
    store.refuse()
    scene.driver.close()
    ends = scene.world.ended()
    assert heard in WORDS
    assert len(scene.world.ran) <= 1
    approved = [each for each in ends if each.answer == "approved"]
    if scene.world.ran:
        (ran,) = approved
        assert scene.world.ran == [ARGS]
        assert ran.state in (State.finished, State.unknown) and ran.result in ("success", "unknown"), ran
    else:
        assert all(each.result != "success" for each in ends), ends
        assert heard != "result"
    check(ends)


@pytest.mark.parametrize("door", DOORS)
def test_every_write_of_a_calls_way_is_refused_once(stage, door):
    scene = stage(door)
    store = scene.world.store
    store.refuse()
    assert lived(scene) == "result"
    scene.driver.close()
    assert 3 <= store.writes <= WRITES
