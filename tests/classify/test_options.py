"""Arguments against a grammar: clusters, abbreviations, values, and what it does not know."""

from __future__ import annotations

import pytest

from checkrein.classify.options import assign, parse
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, HOLE, OPEN, Word

SORT = Spec(
    "sort",
    {
        "args": "read*",
        "opts": "-rn -k= --reverse --key= --color?",
        "writes": "-o= --output=",
        "execs": "--compress-program=",
    },
    {},
)
FIND = Spec("find", {"style": "long", "opts": "-name= -print", "deletes": "-delete"}, {})


def sorted_out(spec, line, **more):
    parsed = parse(spec, [Word(text) for text in line.split()], **more)
    given = [(g.name, g.role, g.value.text if g.value is not None else None) for g in parsed.given]
    return given, [word.text for word in parsed.operands], parsed.unknown


@pytest.mark.parametrize(
    ("line", "given", "operands"),
    [
        ("a b", [], ["a", "b"]),
        ("-r a", [("-r", "text", None)], ["a"]),
        ("-rn a", [("-r", "text", None), ("-n", "text", None)], ["a"]),
        ("-o x a", [("-o", "write", "x")], ["a"]),
        ("-ox a", [("-o", "write", "x")], ["a"]),
        ("-rno x a", [("-r", "text", None), ("-n", "text", None), ("-o", "write", "x")], ["a"]),
        ("--output=x a", [("--output", "write", "x")], ["a"]),
        ("--output x a", [("--output", "write", "x")], ["a"]),
        ("--out=x a", [("--output", "write", "x")], ["a"]),
        ("--comp=sh a", [("--compress-program", "exec", "sh")], ["a"]),
        ("a -o x", [("-o", "write", "x")], ["a"]),
        ("-- -o x", [], ["-o", "x"]),
        ("--color a", [("--color", "text", None)], ["a"]),
        ("- a", [], ["-", "a"]),
    ],
)
def test_options_values_and_operands_are_told_apart(line, given, operands):
    assert sorted_out(SORT, line) == (given, operands, [])


def test_an_ambiguous_abbreviation_counts_as_the_worst_it_could_be():
    given, _, _ = sorted_out(SORT, "--co=sh")
    assert given == [("--compress-program", "exec", "sh")]


@pytest.mark.parametrize("line", ["-z", "--frob", "-rz", "--frob=x", "-zr"])
def test_what_the_grammar_does_not_know_is_reported(line):
    assert sorted_out(SORT, line)[2]


def test_an_open_grammar_reports_nothing():
    assert sorted_out(Spec("ls", {"open": True}, {}), "-z --frob")[2] == []


def test_an_unknown_word_could_be_an_option_unless_it_is_quoted():
    assert parse(SORT, [Word(HOLE, DYNAMIC)]).unknown
    assert not parse(SORT, [Word(HOLE, DYNAMIC, quoted=True)]).unknown
    assert not parse(SORT, [Word(HOLE, OPEN)]).unknown


def test_options_of_one_dash_may_be_whole_words():
    assert sorted_out(FIND, ". -name x -delete") == (
        [("-name", "text", "x"), ("-delete", "delete", None)],
        ["."],
        [],
    )
    assert sorted_out(FIND, "-nam x")[2]


def test_options_end_at_the_first_operand_of_a_wrapper():
    assert sorted_out(SORT, "-r cmd -o x", stop=True) == ([("-r", "text", None)], ["cmd", "-o", "x"], [])


def test_a_missing_value_is_no_value():
    assert sorted_out(SORT, "-o") == ([("-o", "write", None)], [], [])


@pytest.mark.parametrize(
    ("roles", "line", "expected"),
    [
        ("read*", "a b", "read read"),
        ("text read*", "a b c", "text read read"),
        ("read* write", "a b c", "read read write"),
        ("read* write", "a", "write"),
        ("read write", "a b c", "read write extra"),
        ("read", "", ""),
    ],
)
def test_operands_get_the_roles_the_table_gives_them(roles, line, expected):
    pairs = assign(Spec("x", {"args": roles}, {}), [Word(text) for text in line.split()])
    assert " ".join(role for role, _ in pairs) == expected


def test_a_target_given_by_an_option_leaves_only_sources():
    pairs = assign(Spec("cp", {"args": "read* write"}, {}), [Word("a"), Word("b")], all_same=True)
    assert [role for role, _ in pairs] == ["read", "read"]
