"""What makes the next Python script start at once: a worker made ready for it, and checks that passed before.

The engine keeps both. A spare serves one script and no other; a check is skipped only where the same text was
checked against the same tools.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from checkrein.execute.python_prelude import PRELUDE, Names
from checkrein.execute.python_words import Completed, Event, System, feed
from checkrein.execute.python_worker import LostError, Worker
from checkrein.execute.sandbox import Limits

# Does nothing and leaves no name behind: what most scripts use is then known to the type check.
WARM_UP = """
[print(f"{n!r}", len(str(n)), {"a": [n]}.get("a"), (n, 1.5)[0]) for n in range(0)]
[(json.dumps({k: v}), sum([1]), max(1, v), min([1]), k.split(","), "a".join([k]), k.strip() + "b", int("1"))
 for k, v in sorted({"a": 1}.items()) if v > 1 and isinstance(k, str) and not k.startswith("a") or k in [""]]
[asyncio.gather(codemode.call_tool("a"), *[codemode.call_tool("b")]) for _ in range(0)]
None
"""
_MOST_PASSED = 1_024


class Wanted(msgspec.Struct, frozen=True):
    """What a worker is made ready for."""

    names: Names
    limits: Limits

    def same(self, other: Wanted) -> bool:
        return self.limits == other.limits and self.names.same(other.names)


Hire = Callable[[Wanted], Awaitable[Worker]]
Dismiss = Callable[[Worker], Awaitable[None]]


class Spares:
    """At most one worker that waits for a script."""

    def __init__(self, hire: Hire, dismiss: Dismiss) -> None:
        """`hire`: a worker that checks types; `dismiss`: one that is not needed any more."""
        self._hire, self._dismiss = hire, dismiss
        self._ready: tuple[Wanted, Worker] | None = None
        self._making: asyncio.Task[None] | None = None
        self._closed = False

    def take(self, wanted: Wanted) -> Worker | None:
        """The spare, where it was made for such a script; nothing else."""
        if self._ready is None or not self._ready[0].same(wanted):
            return None
        worker, self._ready = self._ready[1], None
        if worker.lost:
            self._dismiss(worker)
            return None
        return worker

    def prepare(self, wanted: Wanted) -> None:
        """Make one ready, in nobody's time."""
        known = self._ready is not None and self._ready[0].same(wanted)
        if known or self._making is not None or self._closed:
            return
        self._making = asyncio.get_running_loop().create_task(self._prepared(wanted))

    async def _prepared(self, wanted: Wanted) -> None:
        worker = None
        try:
            worker = await self._hire(wanted)
            for text in (PRELUDE, WARM_UP):
                await fed(worker, wanted.names, text, checked=True)
            before, self._ready, worker = self._ready, (wanted, worker), None
            if before is not None:
                await self._dismiss(before[1])
        except Exception:  # noqa: BLE001 - the next script does without, and says what is wrong
            self._ready = None
        finally:
            self._making = None
            if worker is not None:
                await self._dismiss(worker)

    async def close(self) -> None:
        self._closed = True
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)
        ready, self._ready = self._ready, None
        if ready is not None:
            await self._dismiss(ready[1])


class Passed:
    """Scripts whose types were found right."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def add(self, key: bytes) -> None:
        self._known[key] = None
        while len(self._known) > _MOST_PASSED:
            self._known.popitem(last=False)

    @staticmethod
    def key(source: str, stubs: str) -> bytes:
        # INVARIANT: a check is skipped only for the very text, against the very stubs, that it passed with.
        made = hashlib.sha256(hashlib.sha256(stubs.encode()).digest())
        made.update(source.encode())
        return made.digest()


async def fed(worker: Worker, names: Names, text: str, *, checked: bool) -> Event:
    """Have a worker run text of our own to its end. Raises LostError."""
    event = await worker.ask(feed(text, checked=checked))
    while isinstance(event, System):
        event = await worker.ask(names.served(event))
    if not isinstance(event, Completed):
        worker.end()
        raise LostError
    return event
