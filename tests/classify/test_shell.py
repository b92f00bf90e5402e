"""The walk: every command of a line is met, whatever it hides in."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category, tool_call
from checkrein.classify import classify


@pytest.mark.invariant("a line we cannot parse is never low")
@pytest.mark.parametrize(
    "text",
    [
        "ls 'open",
        'ls "open',
        "ls $(",
        "ls `x",
        "if true; then ls",
        "ls )",
        "for x in",
        "ls |",
        "case x in",
        "ls && || ls",
        "{ ls",
        "ls <<",
    ],
)
def test_a_line_we_cannot_parse_is_never_low(text):
    risk = judge(text)
    assert risk.category > Category.low
    assert risk.complexity > 0.64


@pytest.mark.invariant("a line that exceeds a cap is never low")
@pytest.mark.parametrize(
    "text",
    [
        "; ".join(["ls"] * 1000),
        "( " * 200 + "ls" + " )" * 200,
        "echo " + "$(" * 100 + "ls" + ")" * 100,
        "bash -c " * 40 + "ls",
        "ls " + "a" * 100_000,
    ],
)
def test_a_line_that_exceeds_a_cap_is_never_low(text):
    assert judge(text).category > Category.low


@pytest.mark.parametrize(
    "line",
    [
        "ls; {}",
        "ls && {}",
        "ls || {}",
        "ls & {}",
        "ls | {}",
        "! {}",
        "( {} )",
        "{{ {}; }}",
        "if {}; then ls; fi",
        "if ls; then {}; fi",
        "if ls; then ls; else {}; fi",
        "if ls; then ls; elif {}; then ls; fi",
        "while {}; do ls; done",
        "until ls; do {}; done",
        "for f in a b; do {}; done",
        "for ((i = 0; i < 3; i++)); do {}; done",
        "case x in x) {};; esac",
        "f() {{ {}; }}",
        "f() {{ {}; }}; f",
        "function f {{ {}; }}; f",
        "x=$({})",
        "x[$({})]=1",
        "echo ${{x:-$({})}}",
        "export x=$({})",
        "local x=$({})",
        "a=(1 $({}))",
        "time {}",
        "ls # comment\n{}",
    ],
)
def test_every_corner_of_the_grammar_is_walked(line):
    assert judge(line.format("rm -rf x")).category >= Category.high
    assert judge(line.format("ls -la")).category is Category.low


def test_variables_set_in_the_line_are_followed():
    assert judge("x=rm; $x -rf y").category is Category.high
    assert judge("x=r; x+=m; $x -rf y").category is Category.high
    assert judge("x=ls; if true; then x=rm; fi; $x y").category > Category.low
    assert judge("x=ls; while read y; do $x; x=rm; done").category > Category.low
    assert judge("f=~/.ssh; cat $f/id_rsa").category is Category.high
    assert judge("f=src; ls $f").category is Category.low


def test_a_subshell_and_a_pipe_keep_their_changes_to_themselves():
    assert judge("(cd ~/.ssh); cat README").category is Category.low
    assert judge("cd ~/.ssh | ls; cat README").category is Category.low
    assert judge("{ cd ~/.ssh; }; cat id_rsa").category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "declare -i n='a[$(id)]'",
        "test -v 'a[$(id)]'",
        "printf -v 'a[$(id)]' x",
        "read 'a[$(id)]'",
        "unset 'a[$(id)]'",
        "(( a[$(id)] ))",
    ],
)
def test_an_array_index_is_run_even_out_of_quotes(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize("line", ["[[ -n $(rm -rf x) ]]", '[ -n "$(rm -rf x)" ]', "(( $(rm -rf x) ))"])
def test_tests_and_arithmetic_hide_nothing(line):
    assert judge(line).category >= Category.high


def test_redefining_a_command_is_a_hijack():
    assert judge("ls() { echo hi; }; ls").category is Category.high
    assert judge("helper() { echo hi; }; helper").category is Category.low


def test_a_function_gets_its_arguments():
    assert judge('f() { cat "$1"; }; f .env').category is Category.high
    assert judge('f() { cat "$1"; }; f a.txt').category is Category.low
    assert judge('f() { "$@"; }; f rm -rf x').category > Category.low


def test_the_walk_needs_no_more_than_words():
    call = {"tool": "Bash", "arguments": {"command": ["rm", "-rf", "x"]}}
    assert classify(tool_call(call)).category is Category.high
    call = {"tool": "Bash", "arguments": {"command": ["echo", "$(rm x)"]}}
    assert classify(tool_call(call)).category is Category.low
