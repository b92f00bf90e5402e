"""Words: quoted text out of reach, braces, and what a joined text is known to be."""

from __future__ import annotations

import pytest

from checkrein.classify.words import (
    DYNAMIC,
    GLOB,
    HOLE,
    LITERAL,
    NETWORK,
    OPEN,
    SECRET,
    Word,
    braces,
    is_glob,
    joined,
    shield,
    unshield,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ["a"]),
        ("a{b,c}", ["ab", "ac"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{,x}y", ["y", "xy"]),
        ("a{1..3}", ["a1", "a2", "a3"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{a..c}", ["a", "b", "c"]),
        ("{1..5..2}", ["1", "3", "5"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{a}", ["{a}"]),
        ("{}", ["{}"]),
        ("a{b", ["a{b"]),
        ("{a..bb}", ["{a..bb}"]),
    ],
)
def test_braces_expand_as_in_bash(text, expected):
    assert sorted(braces(text)) == sorted(expected)


@pytest.mark.parametrize("text", ["{1..1000000}", "{a,b}" * 12, "{" + ",".join("ab" * 60) + "}"])
def test_too_many_braces_are_not_followed(text):
    assert braces(text) is None


def test_quoted_characters_are_not_special_and_come_back():
    text = "a{b,c}*?[x] ~!"
    shielded = shield(text)
    assert unshield(shielded) == text
    assert braces(shielded) == [shielded]
    assert not is_glob(shielded)
    assert shield("plain") == "plain"


@pytest.mark.parametrize(
    ("text", "glob"),
    [("*.py", True), ("a?", True), ("[ab]", True), ("[", False), ("a]b", False), ("a", False)],
)
def test_globs_are_recognised(text, glob):
    assert is_glob(text) == glob


def test_a_joined_text_is_known_as_well_as_its_worst_word_and_tainted_by_all():
    text = joined([Word("a", LITERAL, SECRET), Word(HOLE, DYNAMIC, NETWORK), Word("b", GLOB)])
    assert text == Word(f"a {HOLE} b", DYNAMIC, SECRET | NETWORK)
    assert joined([Word("a")]) == Word("a")
    assert joined([]) == Word("")


def test_what_is_known_of_a_word_ends_at_its_first_hole():
    assert Word(f"/tmp/{HOLE}/x", OPEN).known == "/tmp/"
    assert Word(HOLE, OPEN).known == ""
    assert Word("all").known == "all"


def test_a_word_is_shown_short_and_without_holes():
    assert Word(f"a{HOLE}").shown == "a…"
    assert len(Word("x" * 500).shown) == 80
