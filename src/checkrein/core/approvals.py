"""How questions and approvals end without a person's word: too late, taken back, or because nobody comes.

Doors wait for answers here, and every door ends a question through here. Nothing here says yes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Literal

import msgspec

from checkrein.call import ToolCall
from checkrein.core.lifecycle import UNDER_WAY, State, state_of
from checkrein.errors import InputError, NotFoundError
from checkrein.finishing import Outcome
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.query import Filter, entries, get_entry
from checkrein.pipeline import Pipeline
from checkrein.store import records
from checkrein.store.questions import ASKED, Question, end_question, get_question, unended, waiting

TICK = 1.0
# How often somebody who waits on a loop looks again, should word be lost.
_LOOK_SECONDS = 30.0
# How many approvals are looked at in one sweep.
_MOST_SWEPT = 500
_NOT_CLAIMED = "Nobody came back for this approval."
# So many calls are looked at for those that an earlier process left open.
_LOOK_BACK = 1_000


class Settled(msgspec.Struct, frozen=True):
    """What became of a question."""

    state: str
    actor: str = ""
    message: str = ""


# -- ending ---------------------------------------------------------------------------------------------


def close(
    pipeline: Pipeline, entry: str, answer: Literal["expired", "cancelled"], channel: str, message: str = ""
) -> bool:
    """End a question without a person; False where somebody was quicker."""
    try:
        pipeline.answer(entry, answer, actor="", channel=channel, message=message)
    except (InputError, NotFoundError):
        return False
    return True


def abandon(pipeline: Pipeline, entry: str, channel: str, why: str) -> None:
    """The caller will never come back: its question is withdrawn, its approval ends unused."""
    if not close(pipeline, entry, "cancelled", channel, why):
        with contextlib.suppress(NotFoundError):
            pipeline.drop(entry, evidence=channel, reason=why)


def expire(pipeline: Pipeline, question: Question) -> bool:
    """Whether the question's time is over; then it is a no, whoever comes with a yes later."""
    if question.expires_at > pipeline.clock():
        return False
    # INVARIANT: a question nobody answered in time is a no.
    close(pipeline, question.entry, "expired", "timeout")
    return True


def expire_all(pipeline: Pipeline) -> None:
    """Questions whose time is over and that nobody waits for are a no."""
    for each in waiting(pipeline.store):
        if not pipeline.broker.is_awaited(each.entry):
            expire(pipeline, each)


def sweep(pipeline: Pipeline) -> None:
    """End what nobody came for: questions whose time is over, and approvals that were never used."""
    expire_all(pipeline)
    limits = pipeline.policies.of("").settings.approval
    for each in unended(pipeline.store, pipeline.clock() - limits.claim_seconds, _MOST_SWEPT):
        if not pipeline.broker.is_awaited(each.entry):
            _end_unused(pipeline, each)


def _end_unused(pipeline: Pipeline, question: Question) -> None:
    """INVARIANT: no approved call stays open for ever."""
    found = get_entry(pipeline.store, question.entry)
    state = state_of(found) if found is not None else State.finished
    if found is not None and state is State.approved and found.door != "hooks":
        pipeline.drop(question.entry, evidence="not claimed", reason=_NOT_CLAIMED)
    elif state in (State.approved, State.claimed):
        # An agent was told yes, or a call began, and nobody ever said what became of it.
        pipeline.finish(question.entry, "unknown", evidence="not reported")
    else:
        pipeline.store.write(lambda tx: end_question(tx, question.entry, pipeline.clock()))


def end_left_behind(pipeline: Pipeline, door: str, why: str) -> None:
    """Calls of this door that an earlier process let run, and whose outcome it never recorded, are unknown.

    INVARIANT: a call whose process ended before it did is on the record as unknown.
    """
    left = [
        Outcome(each.id, "unknown", None, why)
        for each in entries(pipeline.store, Filter(), _LOOK_BACK)
        if each.door == door and state_of(each) in UNDER_WAY and not _is_suspended(pipeline, each.id)
    ]
    if left:
        pipeline.store.write(pipeline.finishing(left))


def _is_suspended(pipeline: Pipeline, entry: str) -> bool:
    """Whether a tool has put its call away, to go on with it later."""
    kinds = [body_of_row(row)["kind"] for row in records.of_entries(pipeline.store, [entry])]
    return kinds.count("suspended") > kinds.count("resumed")


# -- waiting --------------------------------------------------------------------------------------------


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
    if found.state == ASKED and expire(pipeline, found):
        found = bound(pipeline, entry, call)
    return None if found.state == ASKED else Settled(found.state, found.actor, found.message)


def wait(
    pipeline: Pipeline, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
) -> Settled | None:
    """What became of the question; nothing while it is open and the time is over, or we are told to stop."""
    deadline = time.monotonic() + seconds
    with pipeline.broker.awaiting(entry):
        while (settled := so_far(pipeline, entry, call)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or (stop is not None and stop.is_set()):
                break
            expires = bound(pipeline, entry, call).expires_at - pipeline.clock()
            pipeline.broker.wait(entry, max(0.0, min(TICK, left, expires)))
    return settled


def withdraw(pipeline: Pipeline, entry: str, call: ToolCall, why: str) -> None:
    """The caller does not want an answer any more."""
    bound(pipeline, entry, call)
    abandon(pipeline, entry, "program", why)


async def answer_to(pipeline: Pipeline, entry: str) -> Question:
    """The question once it is settled, for who waits on a loop; nobody in time is a no."""
    import asyncio  # a server that answers hooks starts without it

    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(told.set)

    with pipeline.broker.telling(entry, tell):
        while True:
            found = get_question(pipeline.store, entry)
            if found is None:
                raise NotFoundError(f"The question {entry} is gone.")
            if found.state != ASKED:
                return found
            left = found.expires_at - pipeline.clock()
            if left <= 0:
                await asyncio.to_thread(expire, pipeline, found)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left + 0.05, _LOOK_SECONDS)):
                    await told.wait()
            told.clear()
