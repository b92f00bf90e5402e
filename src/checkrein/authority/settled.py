"""What became of a question, told to the very call it was asked about and to no other.

A gate with a store of its own calls this; `library` does for one that asks the server. Nothing here says yes.
"""

from __future__ import annotations

import threading
import time

import msgspec

from checkrein.call import ToolCall
from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.store.questions import ASKED, Question, get_question, waiting

TICK = 1.0


class Settled(msgspec.Struct, frozen=True):
    """What became of a question."""

    state: str
    actor: str = ""
    message: str = ""


def bound(pipeline: Pipeline, entry: str, call: ToolCall) -> Question:
    """The question about exactly this call."""
    found = get_question(pipeline.store, entry)
    # INVARIANT: an answer is given to nobody but the very call it was asked for.
    if found is None or found.binding != call.binding:
        raise InputError(f"{entry} is no question about this call.", remedy="Make the call again.")
    return found


def so_far(pipeline: Pipeline, entry: str, call: ToolCall) -> Settled | None:
    """What became of the question until now; nobody in time is a no."""
    found = bound(pipeline, entry, call)
    if found.state == ASKED and found.expires_at <= pipeline.clock():
        _settle(pipeline, entry, "expired", "timeout", "")
        found = bound(pipeline, entry, call)
    if found.state != ASKED:
        return Settled(found.state, found.actor, found.message)
    if not pipeline.broker.is_awaited(entry):
        # Whoever answers later is judged by the call itself, also after a restart.
        pipeline.broker.keep(entry, call)
    return None


def expire(pipeline: Pipeline) -> None:
    """Questions whose time is over and that nobody waits for are a no."""
    now = pipeline.clock()
    for each in waiting(pipeline.store):
        if each.expires_at <= now and not pipeline.broker.is_awaited(each.entry):
            _settle(pipeline, each.entry, "expired", "timeout", "")


def wait(
    pipeline: Pipeline, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
) -> Settled | None:
    """What became of the question; nothing while it is open and the time is over, or we are told to stop."""
    deadline = time.monotonic() + seconds
    with pipeline.broker.awaiting(entry, call):
        while (settled := so_far(pipeline, entry, call)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or (stop is not None and stop.is_set()):
                break
            expires = bound(pipeline, entry, call).expires_at - pipeline.clock()
            pipeline.broker.wait(entry, max(0.0, min(TICK, left, expires)))
    if settled is None:
        pipeline.broker.keep(entry, call)
    return settled


def withdraw(pipeline: Pipeline, entry: str, call: ToolCall, why: str) -> None:
    """The caller does not want an answer any more."""
    bound(pipeline, entry, call)
    _settle(pipeline, entry, "cancelled", "program", why)


def _settle(pipeline: Pipeline, entry: str, answer: str, channel: str, message: str) -> None:
    try:
        pipeline.answer(entry, answer, actor="", channel=channel, message=message)
    except InputError:
        # Somebody was quicker.
        return
