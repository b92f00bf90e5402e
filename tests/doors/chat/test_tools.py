"""What a chat needs of whoever has the tools, and what it does without."""

import asyncio

import pytest

from chat_ground import tool
from checkrein.doors.chat.tools import NoTools, turned_on


def test_where_there_are_no_tools_a_conversation_is_only_talk(talking):
    talk = talking()
    talk.tools = NoTools()
    talk.chat._tools = lambda: talk.tools
    assert asyncio.run(NoTools().tools()) == []
    assert asyncio.run(NoTools().servers()) == []
    assert isinstance(asyncio.run(NoTools().tool("x")), str)
    assert talk.chat.tools(session=talk.id) == []
    assert (talk.chat.resources(), talk.chat.prompts()) == ([], [])


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ((), ["a__x", "a__y", "b__x"]),
        (("a",), ["b__x"]),
        (("a__x",), ["a__y", "b__x"]),
        (("a", "b"), []),
        (("x",), ["a__x", "a__y", "b__x"]),
    ],
)
def test_what_is_turned_off_is_left_out(off, left):
    found = turned_on([tool("a__x"), tool("a__y"), tool("b__x")], off)
    assert [each.name for each in found] == left
