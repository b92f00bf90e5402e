"""A call that was under way when its server was killed, and does no harm when it is made twice."""

import msgspec
import pytest

from lifecycle.cases import EDIT
from lifecycle.contract import check
from lifecycle.drivers.chat import OFFERED


@pytest.mark.invariant("where the arguments a person approved are lost, the others do not run")
@pytest.mark.parametrize("lost", [False, True])
def test_a_conversation_makes_an_edited_call_again_as_it_was_edited_or_not_at_all(stage, lost):
    scene = stage("chat")
    scene.driver.close()
    scene.driver.offered = msgspec.structs.replace(OFFERED, annotations={"readOnlyHint": True})
    ask_no_more = scene.rule("ask")
    scene.driver.open()
    caller = scene.put_away()
    scene.answer(edited=EDIT)
    scene.world.on_run = scene.world.die
    scene.back(caller)
    scene.kill()
    ask_no_more()
    scene.rule("allow")
    if lost:
        scene.change("UPDATE question SET sealed_edit = 'damaged' WHERE entry = ?", scene.entry)
    assert scene.back(caller) == ("unknown" if lost else "result")
    scene.driver.close()
    assert scene.world.ran == ([EDIT] if lost else [EDIT, EDIT])
    check(scene.world.ended())
