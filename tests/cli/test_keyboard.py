"""One key for one answer; a whole line where a reason is wanted."""

import os
import termios

import pytest

from checkrein.cli.keyboard import Keyboard


def test_lines_are_read_whole_however_they_arrive(terminal, monkeypatch):
    person, program = terminal
    with os.fdopen(os.dup(program), "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        keys = Keyboard()
        assert keys.lines(0.01) == []
        os.write(person, b"a 1\nd 2 no way\n")
        assert keys.lines(1) + keys.lines(0.05) == ["a 1", "d 2 no way"]
        os.write(person, b"\x04")
        assert keys.lines(1) == ["q"]


def test_without_a_terminal_nothing_is_typed(monkeypatch):
    with open(os.devnull) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert Keyboard().lines(0.01) == []


@pytest.mark.parametrize(
    ("pressed", "commands"),
    [
        ([b"a"], ["a"]),
        ([b"s", b"j", b"k", b"?"], ["s", "j", "k", "?"]),
        ([b"a\n"], ["a"]),
        ([b"d", b"no", b"t now\n"], ["d not now"]),
        ([b"d not now\na"], ["d not now", "a"]),
        ([b"a 1m7f\n"], ["a 1m7f"]),
        ([b"d", b"x", b"\x7f", b"y\n"], ["d y"]),
    ],
)
def test_keys_become_commands(pressed, commands):
    keys = Keyboard()
    assert [each for chunk in pressed for each in keys._commands(chunk.decode())] == commands


def test_the_terminal_is_left_as_it_was(terminal, monkeypatch):
    _, program = terminal
    with os.fdopen(os.dup(program), "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        before = termios.tcgetattr(program)
        with Keyboard():
            assert termios.tcgetattr(program) != before
        assert termios.tcgetattr(program) == before
