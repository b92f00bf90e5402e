"""Carries out a call's steps, for plain functions and for asynchronous ones: the steps are the same.

A step is work and where it may be done: `here` is quick, `away` may take long, `tool` is the program's own.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator
from typing import Any, Literal

Place = Literal["here", "away", "tool"]
Step = tuple[Place, Callable[[], Any]]
Steps = Generator[Step, Any, Any]


def drive(steps: Steps) -> Any:
    """Do every step in turn, in this thread; a tool that gives its result later is awaited by its caller."""
    send, given = steps.send, None
    try:
        while True:
            place, work = send(given)
            try:
                given = work()
                if place == "tool" and inspect.isawaitable(given):
                    # INVARIANT: a call is over when its result is there, not before.
                    return _onwards(steps, given)
                send = steps.send
            except BaseException as error:  # noqa: BLE001 - the steps decide what becomes of it
                given = error
                send = steps.throw
    except StopIteration as end:
        return end.value


async def drive_async(steps: Steps) -> Any:
    """The same on an event loop, which nothing here holds up for long."""
    return await _driven(steps, steps.send, None)


async def _onwards(steps: Steps, coming: Any) -> Any:
    """The rest of a call whose tool is under way."""
    try:
        send, given = steps.send, await coming
    except BaseException as error:  # noqa: BLE001 - the steps decide what becomes of it
        return await _driven(steps, steps.throw, error)
    return await _driven(steps, send, given)


async def _driven(steps: Steps, send: Callable[[Any], Step], given: Any) -> Any:
    try:
        while True:
            place, work = send(given)
            try:
                given = work() if place != "away" else await in_thread(work)
                if place == "tool" and inspect.isawaitable(given):
                    given = await given
                send = steps.send
            except BaseException as error:  # noqa: BLE001 - the steps decide what becomes of it
                given = error
                send = steps.throw
    except StopIteration as end:
        return end.value


async def in_thread(work: Callable[[], Any]) -> Any:
    """Work that may wait for a person: a thread of its own, so that many questions hold up no other work."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as caught:  # noqa: BLE001 - it belongs to whoever waits
            error = caught
        try:
            loop.call_soon_threadsafe(tell, result, error)
        except RuntimeError:
            # The loop has ended; nobody waits any more.
            return

    threading.Thread(target=run, name="checkrein-gate", daemon=True).start()
    return await done
