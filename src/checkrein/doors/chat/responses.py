"""One response of a model: asked for, written down as it comes, asked for again where it may help.

The agent asks. What the response means, and what is done about it, is the agent's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.providers import Picked, Providers, Trouble
from checkrein.doors.chat.writing import Pen
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

# A request that failed before a word came is tried again this often, after these pauses at most.
_PAUSES = (1.0, 4.0)
_LONGEST_PAUSE = 20.0
# Characters of one response, its thoughts and its calls' arguments with it.
LONGEST_ANSWER = 4_000_000
# An endpoint that only says that it is still there is given up after this long without a word.
LONGEST_SILENCE = 1_800.0
_WORTH_A_RETRY = ("rate", "server", "network", "timeout")


class FailedError(Exception):
    """Raise when a run cannot go on: what the person is told, and whether trying again may help."""

    def __init__(self, trouble: Trouble, *, retry: bool = True) -> None:
        super().__init__(trouble.text)
        self.trouble, self.retry = trouble, retry


class Responses:
    """Responses of all models; what is wrong with one is a `FailedError`."""

    def __init__(self, providers: Providers, lines: Lines) -> None:
        self._providers, self._lines = providers, lines

    async def client(self, picked: Picked) -> Any:
        """What the model is asked through."""
        try:
            return await self._providers.model(picked)
        except Exception as error:
            raise FailedError(self._providers.explain(error)) from error

    async def written(
        self, live: Live, client: Any, sent: list[Any], parameters: Any, pen: Pen
    ) -> ModelResponse:
        """The whole response; tried again where it failed before its first word."""
        for pause in (*_PAUSES, None):
            try:
                return await _written(client, sent, parameters, pen)
            except Exception as error:
                trouble = self._providers.explain(error)
                if pen.begun or pause is None or trouble.kind not in _WORTH_A_RETRY:
                    raise FailedError(trouble) from error
                wait = min(max(pause, trouble.retry_after or 0.0), _LONGEST_PAUSE)
                if trouble.retry_after and trouble.retry_after > _LONGEST_PAUSE:
                    raise FailedError(trouble) from error
                said = f"{trouble.text} Trying again in {wait:g} s."
                self._lines.tell(live.run.session, "notice", live.run.id, text=said, level="warning")
                await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")


async def _written(client: Any, sent: list[Any], parameters: Any, pen: Pen) -> ModelResponse:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import (
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
    )

    length, clock = 0, asyncio.get_running_loop().time
    async with (
        asyncio.timeout(LONGEST_SILENCE) as patience,
        model_request_stream(client, sent, model_request_parameters=parameters) as stream,
    ):
        async for event in stream:
            patience.reschedule(clock() + LONGEST_SILENCE)
            length += _length(event)
            # INVARIANT: no endpoint that never stops fills memory or disk.
            if length > LONGEST_ANSWER:
                raise CheckreinError("The answer was stopped: it is longer than any model's.")
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart | ThinkingPart):
                pen.write(event.index, event.part.part_kind, event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                pen.write(event.index, "text", event.delta.content_delta)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ThinkingPartDelta):
                pen.write(event.index, "thinking", event.delta.content_delta or "")
        return stream.get()


def _length(event: Any) -> int:
    """What a piece of a response adds to it; one that says nothing counts too."""
    kinds = {
        "part_start": ("part", "content", "args"),
        "part_delta": ("delta", "content_delta", "args_delta"),
    }
    where, *names = kinds.get(event.event_kind, ("",))
    found = [getattr(getattr(event, where, None), name, None) for name in names]
    return 1 + sum(len(each) for each in found if isinstance(each, str))
