"""What makes the next Python script start at once: a worker made ready for it, and checks that passed before.

The engine keeps both. A spare serves one script and no other; a check is skipped only where the same text was
checked against the same tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from checkrein.execute.python_prelude import PRELUDE, Names
from checkrein.execute.python_turns import Turns
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


Hire = Callable[[Wanted], Awaitable[Any]]


class Spares:
    """At most one worker that waits for a script."""

    def __init__(self, hire: Hire, turns: Turns) -> None:
        """`hire`: a worker that checks types, fresh from the pool."""
        self._hire, self._turns = hire, turns
        self._ready: tuple[Wanted, Any] | None = None
        self._making: asyncio.Task[None] | None = None
        self._closed = False

    def take(self, wanted: Wanted) -> Any:
        """The spare, where it was made for such a script; nothing else."""
        if self._ready is None or not self._ready[0].same(wanted):
            return None
        worker, self._ready = self._ready[1], None
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
            await self._turns.take(partial(_warmed_up, worker))
            before, self._ready, worker = self._ready, (wanted, worker), None
            if before is not None:
                await ended(before[1], self._turns)
        except Exception:  # noqa: BLE001 - the next script does without, and says what is wrong
            self._ready = None
        finally:
            self._making = None
            if worker is not None:
                await ended(worker, self._turns)

    async def close(self) -> None:
        self._closed = True
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)
        ready, self._ready = self._ready, None
        if ready is not None:
            await ended(ready[1], self._turns)


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


def fed(worker: Any, text: str, *, checked: bool) -> Any:
    """Have a worker run text of our own to its end."""
    step = worker.feed_start(text, skip_type_check=not checked)
    while type(step).__name__ == "FunctionSnapshot":
        step = step.resume_auto()
    return step


def _warmed_up(worker: Any) -> None:
    for text in (PRELUDE, WARM_UP):
        fed(worker, text, checked=True)


async def ended(worker: Any, turns: Turns) -> None:
    """A worker that nobody needs any more is the pool's again, after the turn it is in."""
    with contextlib.suppress(Exception):
        await turns.take(lambda: worker.__exit__(None, None, None))
