"""A call that waits, as JSON and back."""

import pytest

from checkrein.call import ToolCall
from checkrein.doors.library.pending import Pending, pending
from checkrein.errors import InputError

WAITS = Pending(kind="suspended", entry="e", call=ToolCall(tool="x", arguments={"n": [1]}), told=(1, None))


def test_it_comes_back_as_it_was():
    assert pending(WAITS.json()) == pending(WAITS.json().encode()) == pending(WAITS) == WAITS


def test_a_dictionary_will_do():
    assert pending({"kind": "approval", "entry": "e", "call": {"tool": "x"}}).call == ToolCall(tool="x")


@pytest.mark.parametrize(
    "raw", ["", "{}", "[]", b"\xff", {"kind": "other", "entry": "e"}, WAITS.json()[:-1] + ',"more":1}', 3]
)
def test_anything_else_is_refused(raw):
    with pytest.raises(InputError, match="no pending call"):
        pending(raw)


def test_a_format_we_do_not_know_is_refused():
    with pytest.raises(InputError, match="format 2"):
        pending(WAITS.json().replace('"format":1', '"format":2'))
