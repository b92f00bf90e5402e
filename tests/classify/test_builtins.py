"""Builtins that change the shell itself, and the ones that only talk."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "command",
    [
        "cd src && cat ../a.txt",
        "echo $HOME",
        "printf '%s\\n' hi",
        "printf -v x hi",
        "set -euo pipefail; ls",
        "read -r x",
        "mapfile -t lines < a.txt",
        "trap 'echo bye' EXIT",
        "trap - EXIT",
        "exec ls",
        "exec 3>&1",
        "command -v git",
        "alias",
        "hash -r",
        "[ -f x ] && echo yes",
        "printenv HOME",
        "shift 2",
    ],
)
def test_builtins_that_only_talk_are_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "mapfile -C evil -c 1 lines",
        "alias ll='ls -l'",
        "trap 'ls' DEBUG",
        "trap 'ls' ERR",
        "hash -p /tmp/x ls",
        "enable -f ./x.so x",
        "bind -x '\"a\": ls'",
        "complete -C evil git",
        "set -a",
    ],
)
def test_builtins_that_rewire_the_shell_are_high(command):
    assert judge(command).category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        "set",
        "printenv",
        "printenv GITHUB_TOKEN",
        "echo $API_TOKEN",
        "printf '%s' $API_TOKEN",
        "export",
        "declare -p",
    ],
)
def test_printing_the_environment_or_a_secret_variable_is_high(command):
    assert judge(command).category is Category.high


def test_evaluated_and_sourced_text_is_never_low():
    for command in ("eval ls", 'eval "$X"', "eval", "source ./env.sh", ". venv/bin/activate", "coproc cat"):
        assert judge(command).category > Category.low, command


def test_a_carried_command_is_judged_as_itself():
    for command in (
        "command rm x",
        "exec rm x",
        "exec -a ls rm x",
        "eval 'rm x'",
        "trap 'rm x' EXIT",
        "builtin eval 'rm x'",
    ):
        assert judge(command).category >= Category.high, command


def test_cd_to_an_unknown_place_forgets_where_we_are():
    assert judge("cd - && cat a.txt").category is Category.low
    assert judge("cd && cat .netrc").category is Category.high


def test_words_set_by_set_are_the_positional_words():
    assert judge("set -- -rf x; rm $1 $2").category is Category.high
    assert judge("set -- rm; $1 x").category >= Category.high
    assert judge("set -- ls rm; shift; $1 x").category >= Category.high


def test_printed_text_keeps_its_meaning_when_it_is_run():
    assert judge("printf 'rm -rf x' | sh").category is Category.high
    assert judge("printf '%s\\n' 'rm -rf x' | sh").category is Category.high
    assert judge("printf '%s' 'rm -rf x'").category is Category.low


def test_builtins_that_run_or_rename_things_are_seen():
    for command in ("jobs -x rm -rf x", "getopts a PATH -a; ls"):
        assert judge(command).category > Category.low
    for command in ("jobs -l", "getopts ab: opt; echo $opt"):
        assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    ["set -x", "set -- a b", "export NAME", "readonly X", "unset X", "ulimit -n 100", "bash -c 'set -e'"],
)
def test_a_line_that_only_changes_the_shell_is_for_what_comes_later(command):
    assert judge(command).category is Category.medium


@pytest.mark.parametrize(
    "command", ["set -e; ls", "export CI && npm test", "unset X; git status", "export A=b"]
)
def test_changing_the_shell_for_this_line_is_low(command):
    assert judge(command).category is Category.low


def test_asking_what_a_name_means_takes_names():
    assert judge("command -v git node").category is Category.low
    assert judge("command -V git reset --hard").category is Category.medium
