"""Waits for a person's answer to a question, on a loop: scripts and conversations do.

The question is in the store; here is only who waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib

from checkrein.call import ToolCall
from checkrein.errors import InputError, NotFoundError
from checkrein.pipeline import Pipeline
from checkrein.store.questions import ASKED, Question, get_question

# How often somebody who waits looks by himself, should word be lost.
_LOOK_SECONDS = 30.0


async def answer_to(pipeline: Pipeline, entry: str, call: ToolCall) -> Question:
    """The question once it is settled; nobody in time is a no."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(told.set)

    with pipeline.broker.telling(entry, call, tell):
        while True:
            found = get_question(pipeline.store, entry)
            if found is None:
                raise NotFoundError(f"The question {entry} is gone.")
            if found.state != ASKED:
                return found
            left = found.expires_at - pipeline.clock()
            if left <= 0:
                # INVARIANT: a question nobody answered in time is a no.
                await settle(pipeline, entry, "expired", channel="timeout")
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left + 0.05, _LOOK_SECONDS)):
                    await told.wait()
            told.clear()


async def settle(
    pipeline: Pipeline, entry: str, word: str, *, actor: str = "", channel: str, message: str = ""
) -> None:
    """Record an answer; somebody may have been quicker."""

    def say() -> None:
        with contextlib.suppress(InputError, NotFoundError):
            pipeline.answer(entry, word, actor=actor, channel=channel, message=message)

    await asyncio.to_thread(say)
