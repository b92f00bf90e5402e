"""The few ways to spell an answer."""

import pytest

from checkrein.doors.library.answers import Answer, said
from checkrein.errors import InputError


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (True, Answer()),
        (False, Answer(answer="denied")),
        ("yes", Answer()),
        (" No : not: today ", Answer(answer="denied", message="not: today")),
        ("answer: forty-two", Answer(answer="answered", message="forty-two")),
        ({"edited": {"n": 1}}, Answer(edited={"n": 1})),
        ({"answer": "no", "message": "x"}, Answer(answer="denied", message="x")),
        (Answer(answer="yes", message="x"), Answer(message="x")),
    ],
)
def test_an_answer_is_understood(raw, answer):
    assert said(raw) == answer


@pytest.mark.parametrize("raw", ["", "perhaps", "yesterday", {"edited": 3}, 3, None, {"answer": "maybe"}])
def test_what_is_no_answer_is_refused(raw):
    with pytest.raises(InputError, match="is no answer"):
        said(raw)
