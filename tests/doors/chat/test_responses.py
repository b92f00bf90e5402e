"""Asking a model: what comes is written down, what fails is tried again or told, what never ends is ended."""

import asyncio

import pytest
from pydantic_ai.exceptions import ModelHTTPError, ModelRateLimitError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from chat_ground import says, told
from checkrein.doors.chat import Message, Run, responses
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.providers import Providers
from checkrein.doors.chat.responses import FailedError, Responses
from checkrein.doors.chat.writing import Pen
from checkrein.errors import InputError
from own_time import run_in_own_time


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Failures before the first word are tried again at once."""
    monkeypatch.setattr(responses, "_PAUSES", (0.01, 0.02))
    monkeypatch.setattr(responses, "_LONGEST_PAUSE", 1.5)


async def _limited(_messages, _info):
    """A provider that takes no more requests and says when it does again."""
    raise ModelHTTPError.for_category(
        ModelRateLimitError, status_code=429, model_name="m", headers={"retry-after": "0.01"}
    )
    yield ""


@pytest.mark.parametrize("how", ["500", "429"])
def test_what_fails_before_the_first_word_is_tried_again_and_then_told(talk, how):
    talk.models.acts = [_limited] * 3 if how == "429" else []
    assert talk.finish(f"/fail {how}") == "error"
    assert len(talk.models.sent) == 3
    assert sum("Trying again" in each["text"] for each in told(talk, "notice")) == 2
    (error,) = told(talk, "error")
    assert error["retry"] is True
    assert error["error"] == {"500": "server", "429": "rate"}[how]
    assert talk.finish("hello") == "end"
    talk.check()


@pytest.mark.parametrize(
    ("retry_after", "paused"),
    [(None, [0, 1, 5]), ("0.5", [0, 1, 5]), ("3", [0, 3, 7]), ("20", [0, 20, 40]), ("21", [0])],
)
def test_it_pauses_before_it_tries_again_and_as_long_as_the_provider_asks(monkeypatch, retry_after, paused):
    monkeypatch.undo()
    asked = []

    async def limited(_messages, _info):
        asked.append(asyncio.get_running_loop().time())
        headers = {"retry-after": retry_after} if retry_after else {}
        raise ModelHTTPError.for_category(
            ModelRateLimitError, status_code=429, model_name="m", headers=headers
        )
        yield ""

    async def go():
        live, lines = Live(Run(id="r", session="s")), Lines("e")
        pen = Pen(live, Message("m", "assistant"), None, lines)
        with pytest.raises(FailedError):
            await Responses(Providers(), lines).written(
                live,
                FunctionModel(stream_function=limited),
                [ModelRequest.user_text_prompt("hi")],
                ModelRequestParameters(),
                pen,
            )

    run_in_own_time(go)
    assert asked == pytest.approx(paused)


@pytest.mark.parametrize("how", ["cut", "malformed"])
def test_what_breaks_off_is_kept_told_and_can_be_answered_anew(talk, how):
    assert talk.finish(f"/fail {how}") == "error"
    last = talk.messages()[-1]
    assert (last["role"], last["state"]) == ("assistant", "failed")
    assert talk.answer() == "This answer breaks off in the"
    assert last["error"]
    assert len(talk.models.sent) == 1, "words that were told are not said again unasked"
    talk.models.acts = [says("better")]
    assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    assert talk.answer() == "better"
    assert len(talk.messages()) == 2
    talk.check()


def test_a_model_nobody_has_any_more_is_told(talk, monkeypatch):
    async def gone(_picked):
        raise InputError("The provider is switched off.")

    monkeypatch.setattr(talk.models, "model", gone)
    assert talk.finish("hello") == "error"
    assert "switched off" in told(talk, "error")[0]["text"]
    talk.check()


def test_a_retry_after_that_is_too_long_is_told_at_once(talk, monkeypatch):
    monkeypatch.setattr(responses, "_LONGEST_PAUSE", 0.5)
    assert talk.finish("/fail 429") == "error"
    assert not [each for each in told(talk, "notice") if "Trying again" in each["text"]]
    assert len(talk.models.sent) == 1
    talk.check()


def _for_ever(piece):
    async def act(_messages, _info):
        while True:
            yield piece
            await asyncio.sleep(0)

    return act


@pytest.mark.parametrize(
    "piece", ["x" * 50_000, {0: DeltaToolCall("notes__put", "x" * 50_000, tool_call_id="c")}]
)
def test_a_model_that_never_stops_is_stopped(talk, piece):
    talk.models.acts = [_for_ever(piece)]
    assert talk.finish("go on") == "error"
    assert "longer than any model's" in told(talk, "error")[0]["text"]
    kept = talk.messages()[-1]
    assert kept["role"] == "user" or len(kept["parts"][0]["text"]) <= responses.LONGEST_ANSWER
    assert talk.tools.ran == []
    talk.check()
