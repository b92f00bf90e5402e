"""What breaks in us is told apart from what was asked wrongly, and said in the log."""

import re

import msgspec
import pytest

from checkrein.authority import as_answer, perform
from checkrein.errors import InputError
from talker import Talker


@pytest.fixture
def broken(asked):
    def breaks(**_given):
        raise TypeError("something of ours")

    talker = Talker()
    talker.send = breaks
    return msgspec.structs.replace(asked, chat=lambda: talker)


@pytest.mark.invariant("nobody is told that they asked wrongly where it is us who failed")
def test_what_breaks_in_chat_is_not_called_a_request_nobody_understands(broken):
    with pytest.raises(TypeError, match="something of ours"):
        perform(broken, "chat.send", {"session": "s1", "text": "hi"})


@pytest.mark.parametrize("params", [{}, {"session": "s1"}, {"session": 1, "text": "x"}, {"surprise": 1}])
def test_what_was_asked_wrongly_still_is(broken, params):
    with pytest.raises(InputError, match=r"chat\.send cannot be understood"):
        perform(broken, "chat.send", params)


@pytest.mark.invariant("what somebody sent, a key perhaps, is not in the log")
def test_a_fault_is_answered_and_said_in_the_log(broken):
    said = []
    answer = as_answer(lambda: perform(broken, "chat.send", {"session": "s1", "text": "hi"}), said.append)
    assert msgspec.json.decode(answer)["error"] == "CheckreinError"
    (line,) = said
    assert re.fullmatch(r"The request failed: TypeError \(test_faults\.py:\d+\)", line)


def test_a_mistake_is_nothing_for_the_log(broken):
    said = []
    answer = as_answer(lambda: perform(broken, "chat.send", {}), said.append)
    assert msgspec.json.decode(answer)["error"] == "InputError"
    assert said == []
