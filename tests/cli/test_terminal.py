import json
import time

import pytest

from checkrein.call import Reason
from checkrein.cli import terminal
from checkrein.errors import InputError


def test_text_from_an_agent_cannot_drive_the_terminal():
    assert terminal.plain("a\x1b[31mb\x07\u202ec\r\x9b") == "a\\x1b[31mb\\x07\\x202ec\\x0d\\x9b"
    assert terminal.plain("plain 日本語\n") == "plain 日本語\n"


def test_json_from_an_agent_cannot_either_and_stays_what_it_is(capsys):
    value = {"a": "\x9b31m\x7f\u202e\u061c\u2028", "b": "日本語 \U000e0041"}
    terminal.say_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert not set("\x9b\x7f\u202e\u061c\u2028\U000e0041") & set(shown)
    assert "日本語" in shown


def test_times_as_people_write_them():
    assert terminal.moment(None) is None
    before = time.time()
    ago, ahead = terminal.moment("2h"), terminal.moment("7d", ahead=True)
    after = time.time()
    assert before <= ago + 7200 <= after
    assert before <= ahead - 604_800 <= after
    assert terminal.moment("2027-01-15T08:00:00Z") == 1_800_000_000.0
    for text in ("", "noon", "-2h", "99999999-01-01"):
        with pytest.raises(InputError):
            terminal.moment(text)


def test_a_tree_is_drawn(capsys):
    terminal.tree((Reason("a", (Reason("b"), Reason("c"))), Reason("d")))
    assert capsys.readouterr().out == "├─ a\n│  ├─ b\n│  └─ c\n└─ d\n"


def test_a_table_is_as_wide_as_it_needs_to_be(capsys):
    terminal.table(("A", "LONG"), [("longer", "x"), ("y", "\x1b")])
    assert capsys.readouterr().out == "A       LONG\nlonger  x\ny       \\x1b\n"
    terminal.table(("A", "B"), [])
    assert capsys.readouterr().out == "A  B\n"


def test_a_bar_shows_a_share():
    assert terminal.bar(0.5, 4) == "██░░"
    assert terminal.bar(0, 2) + terminal.bar(1, 2) == "░░██"
