"""What may be set of a conversation: known names, values that can be right."""

import pytest

from checkrein.doors.chat.changes import LONGEST_TITLE, changed, titled
from checkrein.errors import InputError


def test_moments_are_set_and_taken_back():
    assert changed({"pinned": True, "archived": False}, 5.0) == {"pinned_at": 5.0, "archived_at": None}
    assert changed({}, 5.0) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"nothing": 1},
        {"head": "m1"},
        {"message_count": 4},
        {"title": ""},
        {"title": " \n\x00"},
        {"title": 5},
        {"title": None},
        {"pinned": 1},
        {"archived": "yes"},
        {"color": "red; background: url(x)"},
        {"color": "#12"},
        {"threshold": 0.69},
        {"threshold": 1.01},
        {"threshold": float("nan")},
        {"retention_tokens": -1},
        {"retention_tokens": 2**63},
        {"auto_compress": "on"},
        {"tools_off": "files"},
        {"tools_off": [" "]},
        {"metadata": []},
        {"metadata": {"a": object()}},
    ],
)
def test_what_cannot_be_right_is_refused(changes):
    with pytest.raises(InputError):
        changed(changes, 1.0)


@pytest.mark.parametrize("color", ["", "red", "#a1B2c3"])
def test_colours(color):
    assert changed({"color": color}, 1.0) == {"color": color}


def test_a_title_is_one_line_and_not_too_long():
    assert titled(" a\n\tb\x1b[31mc ") == "a b [31mc"
    assert len(titled("x" * 1000)) == LONGEST_TITLE and titled("x" * 1000).endswith("…")
    assert titled("\ud83d\ude00 ok") == "😀 ok"


def test_tools_are_named_once_and_in_order():
    assert changed({"tools_off": ["b", "a", "b"]}, 1.0) == {"tools_off": ("a", "b")}
