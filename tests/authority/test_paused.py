"""A tool that stopped goes on once, with what it was told."""

import pytest

from authority.program import CALL, call, decided
from checkrein.authority import paused
from checkrein.authority.wish import Wish
from checkrein.core.redemption import get_entry


@pytest.mark.invariant(
    "a tool that stopped goes on once for each time it stopped, unless repeating is harmless"
)
@pytest.mark.invariant("a tool goes on with what it was told, as it was called")
def test_a_stop_goes_on_once_for_each_time(pipeline):
    entry = decided(pipeline, wish=Wish(let="x")).entry
    go_on = lambda step=1, given=CALL, **more: paused.go_on(  # noqa: E731
        pipeline, entry, given, step, "building", **more
    )
    assert go_on().refused is not None
    paused.pause(pipeline, entry, CALL, 1, {"why": "x"})
    for other in (call(arguments={"n": 2}), call(session="t"), call(tool="drop")):
        assert go_on(given=other).refused is not None
    assert go_on(step=2).refused is not None
    assert go_on().arguments == {"n": 1}
    assert go_on().refused is not None
    assert go_on(again=True).arguments == {"n": 1}
    paused.pause(pipeline, entry, CALL, 2, None)
    assert go_on(again=True).refused is not None
    assert go_on(step=2).arguments
    paused.pause(pipeline, entry, CALL, 3, None, told="digest")
    assert go_on(step=3, told="another digest").refused is not None
    assert go_on(step=3, told="digest").arguments == {"n": 1}
    pipeline.finish(entry, "success")
    assert go_on(step=3, again=True, told="digest").refused is not None


@pytest.mark.invariant("what the policy of this moment refuses does not go on, whatever was said before")
def test_a_tool_that_stopped_does_not_go_on_against_the_policy_of_the_moment(pipeline, user_settings):
    entry = decided(pipeline, wish=Wish(let="x")).entry
    paused.pause(pipeline, entry, CALL, 1, {"why": "x"})
    user_settings('[[rules]]\naction = "deny"\ntool = "pick"\n')
    assert paused.go_on(pipeline, entry, CALL, 1, "building").refused.verdict.stage == "rules"
    found = get_entry(pipeline.store, entry)
    assert (found.result, found.evidence) == ("cancelled", "policy")
    user_settings("")
    assert paused.go_on(pipeline, entry, CALL, 1, "building").refused is not None
