"""Tools have names that scripts can say, and no two share one."""

import keyword
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkrein.execute import names
from checkrein.execute.names import plain_name, script_names

ODD = st.text(st.sampled_from("ab1_-. $/é\u202e\ud800'\"\n"), max_size=6)
PAIRS = st.tuples(ODD, ODD)
SAYABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("fs", "read_file", "fs__read_file"),
        ("everything", "get-sum", "everything__get_sum"),
        ("7zip", "list", "_7zip__list"),
        ("a.b", "c d/é", "a_b__c_d__"),
        ("", "proto__", "__proto___"),
        ("", "debug__", "__debug___"),
        ("utils", "yaml__parse", "utils__yaml__parse_"),
    ],
)
def test_a_tool_alone_is_called_almost_what_it_is(server, tool, name):
    assert script_names([(server, tool)]) == {(server, tool): name}


def test_words_of_the_languages_get_an_underscore(monkeypatch):
    monkeypatch.setattr(names, "_TAKEN", names._TAKEN | {"a__b"})
    assert plain_name("a", "b") == "a__b_"
    assert {"function", "lambda", "typeof", "None"} <= names._TAKEN


@pytest.mark.invariant(
    "all that share a spelling are marked, even the one that was first or is spelled exactly so"
)
def test_all_that_share_a_spelling_are_marked():
    """Also the one spelled exactly so: a newcomer never takes over its name."""
    named = script_names([("s", "get_env"), ("s", "get-env"), ("s", "get.env")])
    assert len(set(named.values())) == 3
    assert all(re.fullmatch(r"s__get_env_x[0-9a-f]{8}", name) for name in named.values())
    assert len(set(script_names([("a", "b__c"), ("a__b", "c")]).values())) == 2


@pytest.mark.invariant("a name that looks marked is marked too, so a mark cannot be forged")
def test_a_mark_cannot_be_forged():
    pairs = [("s", "get_env"), ("s", "get-env")]
    marked = script_names(pairs)
    forged = [("s", name.removeprefix("s__")) for name in marked.values()]
    named = script_names([*pairs, *forged])
    assert {pair: named[pair] for pair in pairs} == marked
    assert len(set(named.values())) == 4


def test_equal_short_marks_become_long_ones(monkeypatch):
    real = names.digest
    monkeypatch.setattr(names, "digest", lambda value: "0" * 8 + real(value)[8:])
    named = script_names([("s", "get_env"), ("s", "get-env")])
    assert len(set(named.values())) == 2
    assert all(re.fullmatch(r"s__get_env_x[0-9a-f]{64}", name) for name in named.values())
    assert all(names._MARKED.search(name) for name in named.values())


def test_long_names_are_cut_and_marked():
    named = script_names([("s", "a" * 500), ("s", "a" * 501)])
    assert len(set(named.values())) == 2
    assert all(len(name) < 200 for name in named.values())


@given(st.lists(PAIRS, max_size=12))
@example([("a", "__b"), ("a_", "_b"), ("a__", "b")])
def test_any_names_become_sayable_and_distinct(pairs):
    named = script_names(pairs)
    assert set(named) == set(pairs)
    assert len(set(named.values())) == len(named)
    assert all(SAYABLE.match(name) and not keyword.iskeyword(name) for name in named.values())


@given(st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=8))
def test_unrelated_tools_change_no_name(pairs, others):
    spellings = {plain_name(*pair) for pair in pairs}
    unrelated = [pair for pair in others if plain_name(*pair) not in spellings]
    alone, together = script_names(pairs), script_names([*unrelated, *reversed(pairs)])
    assert {pair: together[pair] for pair in pairs} == alone
