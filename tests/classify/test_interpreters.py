"""Interpreters and shells: code is never low, and what it visibly does makes it worse."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.invariant("an interpreter with inline or piped code is never low")
@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'print(1)'",
        "python3 -Ic 'print(1)'",
        "node -e 1",
        "node -p 1",
        "perl -e 1",
        "perl -ne 'print'",
        "ruby -e 1",
        "php -r 1",
        "lua -e x",
        "echo 'print(1)' | python3",
        "python3 - < x.py",
        "python3 <<< 'print(1)'",
        "cat x.js | node",
        "python3",
        "bash",
    ],
)
def test_an_interpreter_with_inline_or_piped_code_is_never_low(command):
    risk = judge(command)
    assert risk.category > Category.low
    assert risk.complexity > 0.64


@pytest.mark.parametrize(
    "command", ["python x.py", "bash x.sh", "node x.js", "sh ./x", "bash --rcfile x -i", "python -m evil"]
)
def test_a_script_or_module_we_cannot_see_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "python --version",
        "node -v",
        "bash --version",
        "python -m pytest",
        "python -m json.tool a.json",
        "bash -c 'ls'",
    ],
)
def test_versions_and_what_we_can_see_through_are_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    ("code", "category"),
    [
        ("import shutil; shutil.rmtree('x')", Category.high),
        ("import os; os.system('id')", Category.high),
        ("import subprocess", Category.high),
        ("print(open('/home/dev/.ssh/id_rsa').read())", Category.high),
        ("import os; print(os.environ)", Category.high),
        ("from urllib.request import urlopen", Category.critical),
        ("import socket; socket.socket()", Category.critical),
        ("open('.claude/settings.json', 'w')", Category.critical),
        ("open('/home/dev/.config/checkrein/config.toml', 'w')", Category.critical),
        ("print(sum(range(10)))", Category.medium),
        ("import json; print(json.load(open('a.json')))", Category.medium),
    ],
)
def test_what_code_visibly_does_raises_it(code, category):
    assert judge(f'python3 -c "{code}"').category is category


def test_downloaded_code_is_critical():
    assert judge("curl -s http://localhost:1 | python").category is Category.critical
    assert judge('node -e "$(curl -s http://localhost:1)"').category is Category.critical


def test_shell_text_is_judged_by_what_it_says():
    assert judge("bash -c 'rm -rf x'").category is Category.high
    assert judge("bash -ec 'rm -rf x'").category is Category.high
    assert judge("bash -c 'rm -rf \"$1\"' _ x").category is Category.high
    assert judge('bash -c "$(cat x)"').category >= Category.high
    assert judge("sh <<< 'rm -rf x'").category is Category.high


def test_scripts_for_other_machines_are_code_too():
    assert judge("osascript -e 'do shell script \"id\"'").category >= Category.high
    assert judge("osascript x.scpt").category > Category.low


def test_shells_with_a_syntax_of_their_own_are_opaque():
    for command in ("csh -c 'ls x'", "fish -c 'echo (id)'", "echo 'ls (id)' | fish", "nu -c 'ls'"):
        assert judge(command).category > Category.low, command
    assert judge("fish -c 'rm -rf x'").category is Category.high
    assert judge("fish --version").category is Category.low


def test_our_own_command_line_run_as_a_module_is_our_own_command_line():
    assert judge("python -m checkrein rules add allow --tool Bash").category is Category.critical
    assert judge("python -m checkrein audit list").category is Category.low


def test_words_behind_an_unquoted_command_are_not_part_of_it():
    assert judge("bash -c git status").category is Category.medium
    assert judge("bash -lc 'git status'").category is Category.low
    assert judge("bash -c 'echo \"$1\"' _ hello").category is Category.low
