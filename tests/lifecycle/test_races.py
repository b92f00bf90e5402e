"""What happens at the same moment: an approval runs or is dropped, a session ends while it is asked."""

import threading

import pytest

from checkrein.call import tool_call
from checkrein.core.approvals import abandon
from checkrein.store.questions import claim_question, drop_question
from lifecycle.contract import check
from patience import until


@pytest.fixture
def approved(pipeline):
    """The entry of an approval that nobody came for, and what writes to the store."""
    call = tool_call({"tool": "put", "server": "srv", "door": "gateway", "project": "/p"})
    entry = pipeline.decide(call, asking=True).entry
    pipeline.answer(entry, "approved", actor="ada", channel="console")
    return entry, pipeline.store.write


@pytest.mark.invariant("an approval is taken by compare-and-set, once")
def test_an_approval_is_taken_once(approved):
    entry, write = approved
    assert [write(lambda tx: claim_question(tx, entry, 1.0)) for _ in range(2)] == [True, False]
    assert write(lambda tx: drop_question(tx, entry, 1.0)) is False


@pytest.mark.invariant("an approval is dropped by compare-and-set, never once its call has started")
def test_an_approval_is_dropped_once_and_then_not_taken(approved):
    entry, write = approved
    assert [write(lambda tx: drop_question(tx, entry, 1.0)) for _ in range(2)] == [True, False]
    assert write(lambda tx: claim_question(tx, entry, 1.0)) is False


@pytest.mark.parametrize("door", ["gateway", "library"])
@pytest.mark.parametrize("_again", range(6))
def test_an_approval_is_used_or_dropped(stage, door, _again):
    scene = stage(door)
    caller = scene.put_away()
    scene.answer()
    together = threading.Barrier(2)

    def drop():
        together.wait()
        abandon(scene.pipeline, scene.entry, "test", "nobody comes for it")

    dropping = threading.Thread(target=drop)
    dropping.start()
    together.wait()
    heard = scene.back(caller)
    dropping.join()
    scene.driver.close()
    ends = scene.world.ended()
    (found,) = [each for each in ends if each.entry.id == scene.entry]
    assert (heard == "result") == (found.result == "success") == bool(scene.world.ran)
    assert found.result in ("success", "cancelled")
    assert len(scene.world.ran) <= 1
    check(ends)


def test_a_session_that_ends_while_a_hook_waits_has_the_line_its_question_ends_with(stage):
    scene = stage("hooks")
    caller = scene.ask()
    scene.driver.agent.send("SessionEnd", reason="exit")
    until(lambda: caller.done or scene.pipeline.broker.is_awaited(scene.entry))
    if not caller.done:
        scene.answer("denied")
    assert caller.heard() in ("denied", "cancelled")
    scene.driver.close()
    check(scene.world.ended())


@pytest.mark.invariant("a question whose caller gave up is withdrawn, unless the caller may come back")
def test_whenever_a_client_takes_its_call_back_nobody_is_asked_about_it(stage):
    """So many turns of the loop after its question is in the store."""
    scene = stage("gateway")
    for turns in range(60):
        scene.driver.cut_short({"text": f"{turns}"}, turns)
    scene.driver.close()
    assert scene.world.questions() == []
    assert scene.world.ran == []
    check(scene.world.ended())
