import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.policy.patterns import pattern

TEXT = st.text("ab_*", max_size=8)
NAMES = ["".join(letters) for size in range(7) for letters in itertools.product("ab", repeat=size)]


def reference(text):
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("Bash", ["Bash"], ["bash", "Bash ", "Bas", ""]),
        ("*", ["", "x", "a\nb"], []),
        ("read_*", ["read_", "read_x"], ["read", "xread_", "Read_x"]),
        ("*_x", ["_x", "a_x"], ["_x_", "x"]),
        ("a*a", ["aa", "aba"], ["a", "ab"]),
        ("a*b*c", ["abc", "axbxc", "abbc"], ["ac", "acb", "ab"]),
        ("a**b", ["ab", "axb"], ["a"]),
        ("a?b", ["a?b"], ["axb"]),
        ("[ab].+", ["[ab].+"], ["a", "ax"]),
    ],
)
def test_only_the_star_is_special(text, matching, others):
    assert all(pattern(text).matches(name) for name in matching)
    assert not any(pattern(text).matches(name) for name in others)


@given(TEXT, st.text("ab_", max_size=10))
def test_matching_agrees_with_a_regular_expression(text, name):
    assert pattern(text).matches(name) == bool(reference(text).fullmatch(name))


@given(TEXT, TEXT)
def test_covers_never_says_a_wrong_yes(wide, narrow):
    if pattern(wide).covers(pattern(narrow)):
        assert not [n for n in NAMES if pattern(narrow).matches(n) and not pattern(wide).matches(n)]


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("*", "a*b", True),
        ("a*", "ab*", True),
        ("a*", "abc", True),
        ("*a*", "xa*", True),
        ("*a*b*", "a*b", True),
        ("*ab*", "a*b", False),
        ("ab*", "a*", False),
        ("abc", "abc*", False),
        ("a*a", "a", False),
        ("*a*a*", "*a*", False),
    ],
)
def test_covers_sees_the_common_shapes(wide, narrow, covered):
    assert pattern(wide).covers(pattern(narrow)) is covered


def test_matching_tries_no_combination_of_stars():
    """Trying every one would not come to an end."""
    assert not pattern("*a" * 2000 + "*b").matches("a" * 200_000)
    assert not pattern("*" + "ab*" * 500 + "c").matches("ab" * 100_000)
