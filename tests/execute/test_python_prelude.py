"""Names in a script: tools, our own functions, and nothing else."""

import pytest

from checkrein.execute.python_graph import Function
from checkrein.execute.python_prelude import Asked, Names, help_out
from checkrein.execute.python_values import NotPlainError
from checkrein.execute.sandbox import Tool

NAMES = Names((Tool("fs__read"),), "")


@pytest.mark.parametrize(
    ("name", "positional", "named"),
    [
        ("fs__read", (), {"a": 1}),
        ("codemode.fs__read", ({"a": 1},), {}),
        ("call_tool", ("fs__read", {"a": 1}), {}),
        ("codemode.call_tool", ("fs__read",), {"a": 1}),
        ("call_tool", ("codemode.fs__read", {"a": 1}), {}),
    ],
)
def test_every_way_to_call_a_tool_is_the_same_call(name, positional, named):
    assert NAMES.asked(name, positional, named) == Asked("fs__read", {"a": 1})


@pytest.mark.invariant("only a name in the list we were given becomes a call")
@pytest.mark.parametrize(
    "name", ["globals", "fs__write", "codemode.fs__write", "codemode.codemode.fs__read", "", "yaml.parse"]
)
def test_an_unknown_name_is_never_a_call(name):
    assert NAMES.asked(name, (), {}) is None


@pytest.mark.parametrize("positional", [(), (1,), ("fs__write", {}), ("call_tool", {}), ("fs__read", 1)])
def test_call_tool_knows_tools_only(positional):
    with pytest.raises(NotPlainError):
        NAMES.asked("call_tool", positional, {})


def test_a_function_is_called_what_it_is():
    assert NAMES.value("fs__read") == Function("fs__read")
    assert NAMES.value("open") is None


def test_our_own_functions():
    assert NAMES.helper("codemode.utils__yaml__parse") == NAMES.helper("yaml.safe_load") == "yaml.parse"
    assert NAMES.helper("yaml.unsafe_load") == ""
    assert help_out("yaml.parse", ("a: 1",), {}) == {"return_value": {"a": 1}}
    assert help_out("yaml.parse", ({"text": "a: 1"},), {}) == {"return_value": {"a": 1}}
    assert help_out("yaml.stringify", (), {"value": [1]}) == {"return_value": "- 1\n"}
    assert help_out("yaml.parse", (1,), {})["exc_type"] == "TypeError"
    assert help_out("yaml.parse", (), {})["exc_type"] == "TypeError"
    assert help_out("yaml.parse", ("a: &x 1",), {})["exc_type"] == "ValueError"
    assert help_out("yaml.parse", (".inf",), {})["exc_type"] == "TypeError"
    assert help_out("yaml.stringify", ({1: 2},), {})["exc_type"] == "TypeError"
