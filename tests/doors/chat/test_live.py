"""A run while it is alive: what its model has written so far."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.chat import Message, Run
from checkrein.doors.chat.live import Live


def live():
    async def make():
        return Live(Run(id="r", session="s"))

    return asyncio.run(make())


@given(st.lists(st.tuples(st.integers(0, 3), st.text(min_size=1, max_size=9)), max_size=300))
def test_what_is_written_is_what_came_and_each_piece_knows_its_place(pieces):
    made, whole = live(), {}
    made.begin(Message("m", "assistant"))
    for index, text in pieces:
        assert made.add(index, "text", text) == len(whole.get(index, ""))
        whole[index] = whole.get(index, "") + text
    assert [part.text for part in made.parts] == [whole[index] for index in sorted(whole)]
    assert made.message.parts == made.parts
    made.end()
    assert made.message is None
    assert made.parts == ()


def test_a_second_message_begins_empty():
    made = live()
    made.begin(Message("m", "assistant"))
    made.add(0, "reasoning", "hm")
    made.begin(Message("n", "assistant"))
    assert made.message == Message("n", "assistant")
