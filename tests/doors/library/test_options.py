"""What a program says of a tool, and what it cannot say."""

import pytest

from checkrein.errors import InputError


def test_a_server_and_a_full_name_are_the_tools_own(room):
    gate = room.open(asks="return")
    gate.wrap(lambda: 1, name="look", server="garden")()
    gate.wrap(lambda: 1, name="mcp__shed__look")()
    gate.wrap(lambda: 1, name="read_file", server="disk")()
    gate.wrap(lambda: 1, name="look", server=None)()
    assert [each.tool_name for each in room.entries()] == [
        "mcp__garden__look",
        "mcp__shed__look",
        "mcp__disk__read_file",
        "look",
    ]


def test_a_tool_without_a_name_cannot_be_wrapped(room):
    gate = room.open()
    with pytest.raises(InputError, match="needs a name"):
        gate.spec("")
