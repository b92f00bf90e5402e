import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.call import ToolCall
from checkrein.doors.hooks.routing import choose
from checkrein.policy.tasks import LONGEST
from checkrein.settings import Model


def routed(trust=0.9, failures=0, **arguments):
    return choose(ToolCall(tool="Agent", arguments=arguments), trust, failures, Model())


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"subagent_type": "Explore", "prompt": "look around"}, "worker"),
        ({"description": "run the tests"}, "worker"),
        ({"prompt": "Summarise what changed"}, "reporter"),
        ({"subagent_type": "code-reviewer"}, "analyst"),
        ({"prompt": "implement it"}, "analyst"),
        ({}, "analyst"),
        ({"prompt": "change a/x.py, b/y.py and c/z.py"}, "architect"),
        ({"prompt": "change a/x.py, a/y.py and a/z.py"}, "analyst"),
        ({"prompt": "decide whether to choose this? or that?"}, "architect"),
        ({"prompt": "and/or ///  / .. "}, "analyst"),
    ],
)
def test_the_task_says_who_takes_it(arguments, name):
    choice = routed(**arguments)
    assert choice.name == name
    assert choice.reason


def test_little_trust_calls_for_the_architect():
    assert routed(trust=0.1, description="run the tests").name == "architect"
    assert routed(trust=None, description="run the tests").name == "worker"


def test_every_failure_in_a_row_goes_one_step_up_and_ends_at_the_user():
    names = [routed(failures=count, prompt="Summarise it").name for count in range(6)]
    assert names == ["reporter", "worker", "analyst", "architect", "user", "user"]
    user = routed(failures=9, prompt="Summarise it")
    assert user.model == ""
    assert "9 failures in a row" in user.reason
    assert "1 failure in a row" in routed(failures=1, prompt="Summarise it").reason


@pytest.mark.parametrize("part", ["a", "a/", "a.", "-", "/", "?", "é", "ab ", "which of "])
def test_hostile_text_costs_no_more_than_its_length(part):
    """Everybody waits while one task is read, so only its beginning is."""
    text = part * 50_000
    assert routed(prompt=text, description=text, subagent_type=text, agent_type=text).reason
    cut = text[:LONGEST]
    assert routed(prompt=cut + " change a/x.py, b/y.py and c/z.py") == routed(prompt=cut)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(80))
@given(
    st.dictionaries(
        st.sampled_from(["prompt", "description", "subagent_type", "agent_type", "model"]), JSON, max_size=5
    ),
    st.none() | st.floats(0, 1),
    st.integers(0, 8),
)
def test_no_arguments_do_more_than_be_routed(arguments, trust, failures):
    choice = choose(ToolCall(tool="Agent", arguments=arguments), trust, failures, Model())
    assert choice.name in ("reporter", "worker", "analyst", "architect", "user")
    assert (choice.model == "") is (choice.name == "user")
