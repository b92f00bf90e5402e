"""JSON that msgspec rejects: what it holds is told apart, its top level is found, hostile text ends soon."""

import json
import sys

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway import json_fallback
from checkrein.doors.gateway.json_fallback import (
    MOST_TOKENS,
    NOT_UNICODE,
    TOO_DEEP,
    TOO_LARGE,
    read,
    replace_surrogates,
    write,
)

HUGE = "1" * 5001
DEEP = "[" * 5000 + "]" * 5000
DEEP_OBJECTS = '{"a":' * 5000 + "1" + "}" * 5000
CUT = '"cut \\ud83d"'
AWKWARD = ["1e400", "-1e400", HUGE, f"-{HUGE}", DEEP, DEEP_OBJECTS, CUT, '"\\ude00\\ud83d"', '{"\\ud83d": 1}']
NO_JSON = ["", "NaN", "-Infinity", "01", "'x'", '"\t"', '"\\q"']
NO_JSON += ["[1,]", "{,}", "1 2", "[1}", '{"a" 1}', "{1:2}"]


def peculiar(text):
    """What the standard decoder makes of it, which is given all the stack and digits that it needs."""
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    sys.setrecursionlimit(60_000)
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(text, parse_constant=lambda name: json.loads("no JSON"))
    finally:
        sys.setrecursionlimit(limits[0])
        sys.set_int_max_str_digits(limits[1])


texts = st.recursive(
    st.sampled_from(["1", "-2.5", "null", "true", '"é\\n\\u00e9]}"', "12345678901234567890"] + AWKWARD),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda each: "[ " + " ,".join(each) + "]")
        | st.lists(st.tuples(st.sampled_from(["a", "id", "\\u0061", "{"]), inner), max_size=4).map(
            lambda each: "{" + ",\n".join(f'"{name}" : {value}' for name, value in each) + " }"
        )
    ),
    max_leaves=12,
)
members = st.lists(
    st.tuples(st.sampled_from(["id", "method", "jsonrpc", "\\u0069d", "params"]), texts), max_size=6
)


@given(
    members,
    st.sampled_from(["1", '"x"', "7000000000000000000000", "-3", "0.5", "null", '"\\u00e9"', "{}", "[1]"]),
    st.text(st.sampled_from(" \t\n\r"), max_size=3),
    st.none() | st.tuples(st.integers(0, 30_000), st.sampled_from([*NO_JSON, "]", "}", ",", '"', "[", ":"])),
)
@settings(max_examples=examples(400))
def test_the_top_level_is_what_the_standard_decoder_finds_or_it_is_no_json(rows, known, space, spoiled):
    rows = [*rows, ("id", known)]
    text = space + "{" + f",{space}".join(f'"{name}":{value}' for name, value in rows) + "}" + space
    if spoiled is not None:
        at = spoiled[0] % (len(text) + 1)
        text = text[:at] + spoiled[1] + text[at:]
    try:
        wanted = peculiar(text)
    except ValueError:
        with pytest.raises(ValueError):
            read(text.encode())
        return
    found = read(text.encode())
    if found.whole:
        assert found.value == wanted
        return
    assert found.value.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, dict | list):
            assert found.value[name] == type(value)()
        elif isinstance(value, str) or value is None or (isinstance(value, int) and abs(value) < 10**4300):
            assert found.value[name] == value and type(found.value[name]) is type(value)


@pytest.mark.parametrize(
    ("value", "fault", "whole"),
    [
        ("1e400", TOO_LARGE, False),
        (HUGE, TOO_LARGE, False),
        (DEEP, TOO_DEEP, False),
        (DEEP_OBJECTS, TOO_DEEP, False),
        (CUT, NOT_UNICODE, True),
        ("[1.5, 10]", "", True),
    ],
)
def test_what_is_unusual_is_named(value, fault, whole):
    found = read(f'{{"id": 1, "result": {value}}}'.encode())
    assert (found.fault, found.whole) == (fault, whole)
    assert found.value["id"] == 1


@pytest.mark.parametrize("text", [*NO_JSON, "[" * 5000, f"[{DEEP}", f'{{"a":{DEEP},}}', f'{{"a":{DEEP}}} x'])
def test_what_is_no_json_is_none(text):
    with pytest.raises(ValueError):
        read(text.encode())


def test_bytes_that_are_no_utf8_are_no_json():
    for raw in (b'"\xff"', b'"\xed\xa0\xbd"', '"x"'.encode("utf-16")):
        with pytest.raises(ValueError):
            read(raw)


@pytest.mark.invariant("a hostile text costs time in proportion to its length, and no recursion of ours")
def test_hostile_nesting_is_looked_at_once_and_only_so_long(monkeypatch):
    looked = []
    after_blank = json_fallback._after_blank
    monkeypatch.setattr(
        json_fallback, "_after_blank", lambda text, at: looked.append(at) or after_blank(text, at)
    )

    def steps(depth):
        looked.clear()
        text = '{"a":' + '[{"b":[0,' * depth + "1" + "]}]" * depth + ',"id":9}'
        assert read(text.encode()).value == {"a": [], "id": 9}
        # It never goes back.
        assert looked == sorted(looked)
        return len(looked)

    assert steps(8_000) <= 2 * steps(4_000)
    with pytest.raises(ValueError, match="too many"):
        read(b'{"a":' + b"[" * MOST_TOKENS + b"]" * MOST_TOKENS + b',"id":9}')


@pytest.mark.parametrize(
    "text",
    ['"\\ud83d"', '["a\\\\\\ud83d\\"", {"\\udc00": ["é", 1.5, null]}]', '"\\ud83d\\ude00 \\ude00\\ud83d"'],
)
def test_half_a_pair_is_written_as_the_escape_it_was(text):
    value = json.loads(text)
    assert json.loads(write(value)) == value
    assert write(json.loads('["é", "\\ud83d"]')) == '["é","\\ud83d"]'.encode()


def test_half_a_pair_becomes_a_mark_for_those_who_need_text():
    found = replace_surrogates(
        json.loads('{"a\\ud83d": ["\\ud83d\\ude00", "\\ude00\\ud83d", "\\"\\\\", 1.5]}')
    )
    assert found == {"a\ufffd": ["\U0001f600", "\ufffd\ufffd", '"\\', 1.5]}
    same = {"é": [1]}
    assert replace_surrogates(same) is same
