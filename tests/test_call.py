import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.call import (
    Category,
    Reason,
    Risk,
    Verdict,
    canonical,
    digest,
    is_deep,
    reason_lines,
    spelled,
    split_name,
    tool_call,
)
from checkrein.errors import InputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_mcp_names_are_server_and_tool():
    assert split_name("mcp__mail__send") == ("mail", "send")
    assert split_name("mcp__mail__send__now") == ("mail", "send__now")
    for name in ("Bash", "mcp__", "mcp____x", "mcp__mail__", "mcp__mail", "MCP__a__b", ""):
        assert split_name(name) == (None, name)


def test_a_call_keeps_an_explicit_server():
    call = tool_call({"tool": "mcp__a__b", "server": "s"})
    assert (call.server, call.tool, call.name) == ("s", "mcp__a__b", "mcp__s__mcp__a__b")
    call = tool_call({"tool": "mcp__mail__send"})
    assert (call.server, call.tool, call.name) == ("mail", "send", "mcp__mail__send")


@pytest.mark.parametrize(
    "raw",
    [None, [], "x", 5, {}, {"tool": ["Bash"]}, {"tool": None}, {"tool": "Bash", "arguments": "ls"}]
    + [{"tool": "Bash", "arguments": []}, {"tool": "Bash", "server": 5}, {"tool": "x", "history": [1]}],
)
def test_what_is_not_a_call_is_refused(raw):
    with pytest.raises(InputError):
        tool_call(raw)


def test_equal_data_has_one_spelling():
    assert canonical({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": "1"})


@given(JSON)
def test_canonical_never_raises(value):
    assert canonical(value) == canonical(value)


@pytest.mark.parametrize("value", ["\ud800", {"a": object}, 2**70, math.inf, {"\udfff": 1}])
def test_canonical_spells_what_json_cannot(value):
    assert isinstance(canonical(value), bytes)


def test_the_binding_names_everything_that_matters():
    call = {"tool": "Bash", "arguments": {"command": "ls"}, "session": "s", "project": "/p", "agent": "a"}
    base = tool_call(call).binding
    assert tool_call(call).binding == base
    for change in (
        {"arguments": {"command": "ls -a"}},
        {"session": "t"},
        {"project": "/q"},
        {"agent": "b"},
        {"tool": "Read"},
        {"user": "eve"},
        {"server": "x"},
        {"door": "chat"},
        {"cwd": "/p/sub"},
    ):
        assert tool_call({**call, **change}).binding != base


def test_a_verdict_knows_its_word():
    risk = Risk(category=Category.low)
    words = [
        Verdict(decision=d, stage="x", risk=risk, reasons=()).word for d in ("auto_approved", "logged_only")
    ]
    assert words == ["allow", "allow"]
    assert Verdict(decision="human_required", stage="x", risk=risk, reasons=()).word == "ask"
    assert Verdict(decision="blocked", stage="x", risk=risk, reasons=()).word == "deny"


def test_reasons_become_lines_parents_first():
    tree = (Reason("a", (Reason("b"), Reason("c"))), Reason("d"))
    assert reason_lines(tree) == ["a", "b", "c", "d"]


def test_an_approval_binds_to_the_definition_a_person_accepted():
    plain = tool_call({"tool": "send", "server": "mail"})
    one, two = (tool_call({"tool": "send", "server": "mail", "definition": text}) for text in ("a", "b"))
    assert len({plain.binding, one.binding, two.binding}) == 3
    assert one.argument_hash == two.argument_hash == plain.argument_hash


def nested(times):
    value = 1
    for at in range(times):
        value = ([value], {"a": value}, (value,), Reason("x", value))[at % 4]
    return value


@pytest.mark.parametrize("most", [0, 1, 2, 9])
def test_values_in_one_another_are_counted_whatever_holds_them(most):
    assert not is_deep(nested(most), most) and not is_deep(nested(most + 1), most)
    assert is_deep(nested(most + 2), most)


def test_depth_is_looked_at_without_going_down():
    value = []
    for _ in range(200_000):
        value = [value]
    assert is_deep(value, 100_000)
    while value:
        (value,) = value


def test_what_is_wide_is_not_deep():
    assert not is_deep([[each] for each in range(10_000)], 1)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("git__get_sum", "git__get_sum"),
        ("git-hub__get.sum", "git_hub__get_sum"),
        ("1a__é", "_1a___"),
        ("", ""),
    ],
)
def test_a_name_is_spelled_in_letters_a_program_may_use(name, written):
    assert spelled(name) == written
