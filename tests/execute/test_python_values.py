"""What crosses the border is JSON, copied, and no more of it than may cross."""

import datetime

import pytest

from checkrein.execute.python_graph import Cycle, Odd, Shown
from checkrein.execute.python_values import NotPlainError, TooLargeError, arguments, plain, settled
from checkrein.execute.sandbox import Answer


def nested(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [None, True, 0, -1.5, "é", [], {}, {"a": [1, {"b": None}]}, 2**64 - 1, nested(64)]
)
def test_json_crosses_as_it_is(value):
    assert plain(value) == value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**64,
        -(2**63) - 1,
        {1: 2},
        {None: 1},
        {1},
        b"x",
        object(),
        nested(65),
        nested(10**5),
    ],
    ids=range(11),
)
def test_what_json_has_no_word_for_is_refused(value):
    with pytest.raises(NotPlainError):
        plain(value)


@pytest.mark.parametrize(
    "value", ["x" * (1 << 20), ["a"] * (1 << 20), {"é" * (1 << 19): 1}, "\\" * (600 << 10)]
)
def test_more_than_may_cross_is_refused(value):
    with pytest.raises(TooLargeError):
        plain(value)


def test_the_copy_is_ours():
    theirs = {"a": [1]}
    ours = plain(theirs)
    theirs["a"].append(2)
    assert ours == {"a": [1]}


def test_a_subclass_is_not_what_it_pretends_to_be():
    class Text(str):
        __slots__ = ()

    with pytest.raises(NotPlainError):
        plain({"path": Text("/etc/passwd")})


def test_what_holds_itself_is_refused_and_text_that_looks_so_is_text():
    with pytest.raises(NotPlainError, match="holds itself"):
        arguments("fs__read", (), {"a": [Cycle()]})
    assert arguments("fs__read", (), {"a": ["[...]"]}) == {"a": ["[...]"]}


def test_what_is_only_shown_is_no_argument():
    """INVARIANT: a tool is never called with the description of something."""
    with pytest.raises(NotPlainError, match="await"):
        arguments("fs__read", (), {"path": Shown("<coroutine external_future(0)>")})
    with pytest.raises(NotPlainError, match=r"codemode\.fs__delete"):
        arguments("fs__read", (), {"path": [Shown("codemode.fs__delete")]})
    assert plain([Shown("range(0, 3)")], lenient=True) == ["range(0, 3)"]
    with pytest.raises(TooLargeError):
        plain(Shown("x" * (1 << 20)), lenient=True)


def test_a_result_may_hold_sets_dates_and_other_keys():
    day = datetime.date(2026, 1, 2)
    given = {2: (day, Odd("set", [3])), None: 1, "p": Odd("Point", attributes={"x": 1})}
    assert plain(given, lenient=True) == {"2": ["2026-01-02", [3]], "null": 1, "p": {"x": 1}}
    with pytest.raises(NotPlainError, match="holds a set; only"):
        plain(Odd("set", [3]))
    with pytest.raises(NotPlainError, match="not text but a tuple"):
        plain({Odd("tuple"): 1}, lenient=True)
    with pytest.raises(NotPlainError, match="twice"):
        plain({1: 1, "1": 2}, lenient=True)


def test_keywords_or_one_dict():
    assert arguments("t", (), {"a": 1}) == arguments("t", ({"a": 1},), {}) == {"a": 1}
    assert arguments("t", (), {}) == {}
    for positional, named in [((1,), {}), (({"a": 1}, {"b": 2}), {}), (({"a": 1},), {"b": 2}), ((None,), {})]:
        with pytest.raises(NotPlainError):
            arguments("t", positional, named)


def test_an_answer_is_a_value_an_error_or_a_refusal():
    assert settled("t", Answer(value={"a": 1})) == {"return_value": {"a": 1}}
    assert settled("t", Answer(error="no such file")) == {
        "exc_type": "RuntimeError",
        "message": "no such file",
    }
    refusal = {"exc_type": "PermissionError", "message": "ToolCallDenied: t: policy"}
    assert settled("t", Answer(denied="policy")) == refusal
    assert settled("t", Answer(value="x" * (2 << 20)))["exc_type"] == "RuntimeError"
    assert len(settled("t", Answer(error="x" * (1 << 20)))["message"]) <= 16 << 10
