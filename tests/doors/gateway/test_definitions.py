"""Definitions read without trust, and shown so that they drive nothing."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.call import digest
from checkrein.doors.gateway.definitions import (
    DEEPEST,
    LONGEST_SHOWN,
    MOST_DIFF_LINES,
    UNSEEN,
    diff,
    legible,
    lines,
    read,
    shown,
    texts,
)


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("raw", [{"name": "t"}, {"name": "t", "é": [1.5, None, "ü"]}, {"b": 1, "a": 2}])
def test_the_hash_is_the_raw_definition_s_digest(raw):
    assert read("s", "tool", raw).hash == digest(raw)
    assert read("s", "tool", raw).value == raw
    assert read("s", "instructions", "Be kind.").hash == digest("Be kind.")


def test_a_usable_tool_has_its_offered_name():
    found = read("mail", "tool", {"name": "send.all-now_1"})
    assert (found.offered, found.fault) == ("mail__send.all-now_1", "")


def test_the_offered_name_has_a_limit():
    assert read("s" * 32, "tool", {"name": "t" * 94}).fault == ""
    assert "longer than 128" in read("s" * 32, "tool", {"name": "t" * 95}).fault


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "ä", "a\n", "a\u200b", "\u0430", None, 3, ["a"], "a" * 97]
)
def test_a_tool_s_name_is_plain(name):
    assert read("s", "tool", {"name": name}).fault == "It has no usable name."


@pytest.mark.parametrize(
    ("name", "usable"), [("Fix it: now", True), ("é", True), (" a", False), ("a\u202e", False)]
)
def test_a_prompt_s_name_may_be_any_that_can_be_seen(name, usable):
    assert (read("s", "prompt", {"name": name}).fault == "") is usable


def test_deep_definitions_are_refused_however_deep():
    assert read("s", "tool", {"name": "t", "inputSchema": nested(DEEPEST - 2)}).fault == ""
    assert (
        read("s", "tool", {"name": "t", "inputSchema": nested(DEEPEST)}).fault == "It is nested too deeply."
    )
    assert read("s", "tool", {"name": "t", "inputSchema": nested(100_000)}).fault == "It cannot be read."


def test_texts_are_all_texts_names_too():
    assert sorted(texts({"a": ["b", {"c": 1, "d": None}], "e": "f"})) == ["a", "b", "c", "d", "e", "f"]


@given(st.text())
def test_shown_text_holds_nothing_unseen(text):
    for line in (legible(text, 50), *lines(f'"{text}"'), *diff('"a"', '"b"')):
        assert not UNSEEN.search(line)
        assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for char in line)


def test_every_format_and_control_character_is_unseen():
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            assert UNSEEN.search(chr(code)), hex(code)


def test_shown_text_is_bounded_and_says_how_much_there_is():
    assert legible("a" * 100, 10) == "aaaaaaaaaa… [100 characters]"
    assert legible("\u202e" * 10, 20).endswith("… [10 characters]")
    text = read("s", "tool", {"name": "t", "description": "a\n" * 100_000}).text
    assert len(shown(text)) < LONGEST_SHOWN + 100


def test_a_description_cannot_pass_for_a_field_beside_it():
    text = read("s", "tool", {"name": "t", "description": 'x"\n  "annotations": {"readOnlyHint": true}'}).text
    assert not [line for line in lines(text) if line.startswith('  "annotations"')]


def test_a_diff_shows_what_changed_and_ends():
    one = read("s", "tool", {"name": "t", "description": "old"}).text
    two = read("s", "tool", {"name": "t", "description": "new"}).text
    found = diff(one, two)
    assert '-  "description": "old",' in found and '+  "description": "new",' in found
    big = read("s", "tool", {"name": "t", "description": "\n".join(map(str, range(5_000)))}).text
    assert len(diff(one, big)) <= MOST_DIFF_LINES + 1


def test_a_change_beyond_what_is_shown_is_still_said():
    long = "a\n" * 60_000
    one, two = (read("s", "tool", {"name": "t", "z": long + end}).text for end in "xy")
    assert diff(one, two) == ["They differ only beyond what is shown here."]


def test_what_was_kept_badly_is_shown_as_it_is():
    assert shown("{oops\x1b[2J") == "{oops<U+001B>[2J"
