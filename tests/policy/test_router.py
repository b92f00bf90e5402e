import pytest

from checkrein.call import ToolCall
from checkrein.policy.router import PERSONAS, escalate, modules_of, route
from checkrein.settings import Model


@pytest.mark.parametrize(
    ("given", "persona"),
    [
        ({}, "analyst"),
        ({"task": "something else"}, "analyst"),
        ({"task": "implementation"}, "analyst"),
        ({"task": "test"}, "worker"),
        ({"task": "report"}, "reporter"),
        ({"task": "decision"}, "architect"),
        ({"decision_points": 1}, "analyst"),
        ({"task": "report", "decision_points": 2}, "architect"),
        ({"task": "test", "modules": 2}, "worker"),
        ({"task": "test", "modules": 3}, "architect"),
        ({"task": "test", "trust": 0.39}, "architect"),
        ({"task": "test", "trust": 0.4}, "worker"),
        ({"decision_points": 2, "settings": Model(opus_aot_threshold=3)}, "analyst"),
    ],
)
def test_the_persona_follows_from_the_task(given, persona):
    routed = route(**given)
    assert routed.persona.name == persona
    assert routed.reason


def test_personas_carry_their_model_and_law():
    assert {each.name: (each.model, each.law) for each in PERSONAS} == {
        "architect": ("opus", "first"),
        "analyst": ("sonnet", "second"),
        "worker": ("haiku", "second and third"),
        "reporter": ("haiku", "third"),
    }


def test_escalation_climbs_to_the_user_and_stays_there():
    climbed, name = [], "reporter"
    while name != "user":
        climbed.append(name)
        above = escalate(name)
        name = above if above == "user" else above.name
    assert climbed == ["reporter", "worker", "analyst", "architect"]
    assert escalate("user") == escalate("nobody") == "user"


def test_modules_are_counted_from_the_files_of_the_call():
    edits = [{"file_path": "/p/a/x"}, {"file_path": "/p/a/y"}, {"file_path": "/p/b/x"}]
    call = ToolCall(
        tool="MultiEdit", arguments={"edits": edits, "paths": ["/p/c/x", "/p/d/x"], "note": "/p/e/x"}
    )
    assert modules_of(call) == 4
    assert route("test", call=call).persona.name == "architect"
    assert route("test", call=call, modules=1).persona.name == "worker"
    assert modules_of(ToolCall(tool="x", arguments={"path": 5, "file": None})) == 0
