"""What became of calls, handed to the record a few at a time: no result waits for it.

Until it is recorded a call's fate counts as unknown, which is also what a crash in between leaves behind.
Failures wait for no company and are not given up: what lowers trust is lost no easier than what raises it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec

from checkrein.errors import CheckreinError
from checkrein.finishing import About, Outcome
from checkrein.pipeline import Pipeline
from checkrein.store import Offer

SECONDS = 0.05
MOST = 256
# Fewer than this are not worth a group of their own; this many are, also where only one call is under way.
FEW, MANY = 8, 24
# Failures that the store refused: when they are tried again, and how many are kept for it.
AGAIN_SECONDS, MOST_OWED = 5.0, 4_096
# Calls under way whose outcome need not be looked up; of more, it is.
MOST_BEGUN = 4_096


class Outcomes:
    """Collects outcomes for a moment. Lives on the gateway's loop."""

    def __init__(self, pipeline: Pipeline, say: Callable[[str], None]) -> None:
        self._pipeline, self._say = pipeline, say
        self._waiting: list[Outcome] = []
        self._begun: dict[str, About] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owed: deque[Outcome] = deque(maxlen=MOST_OWED)
        self._handed: set[Future[None]] = set()

    def began(self, entry: str, about: About) -> None:
        """A call was just allowed: what its outcome will be about."""
        self._begun[entry] = about
        if len(self._begun) > MOST_BEGUN:
            del self._begun[next(iter(self._begun))]

    def add(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        # INVARIANT: what is known is used once, so that a second word about a call is looked up and dropped.
        self._waiting.append(Outcome(entry, outcome, output, evidence, self._begun.pop(entry, None)))
        if len(self._waiting) >= MOST or outcome == "failure":
            self.flush()
        else:
            self._flush_in(SECONDS)

    def _flush_in(self, seconds: float) -> None:
        if self._timer is None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(seconds, self.flush)

    def flush(self) -> list[Future[None]]:
        """Hand over what there is; whoever must know waits for all that is on its way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._loop = asyncio.get_running_loop()
        if owed := [self._owed.popleft() for _ in range(len(self._owed))]:
            self._hand_over(owed, again=True)
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._hand_over(waiting)
        return list(self._handed)

    def enough(self) -> bool:
        """Whether there is so much to write that a single call's way to its server is time for it."""
        return len(self._waiting) >= MANY

    def meanwhile(self) -> list[Offer]:
        """What there is to write while calls are under way."""
        ledger, found = self._pipeline.ledger, list[Offer]()
        if len(self._waiting) >= FEW:
            # The timer stays: what comes later may not find a crowd.
            waiting, self._waiting = self._waiting, []
            found.append(self._offer(waiting))
        if ledger.worth_filing:
            found.append(Offer(ledger.file, _filed))
        return found

    def _offer(self, waiting: list[Outcome]) -> Offer:
        done = self._on_its_way(Future(), waiting)
        return Offer(
            self._pipeline.finishing(waiting),
            lambda error: done.set_result(None) if error is None else done.set_exception(error),
        )

    def _on_its_way(self, done: Future[None], waiting: list[Outcome], again: bool = False) -> Future[None]:
        self._handed.add(done)
        done.add_done_callback(partial(self._done, waiting, again))
        return done

    def _hand_over(self, waiting: list[Outcome], *, again: bool = False) -> None:
        if len(waiting) >= FEW and not again:
            # Many at once cost less right here than with the writer beside us; their lines follow later.
            offer = self._offer(waiting)
            try:
                self._pipeline.store.offer([offer])
            except CheckreinError as error:
                offer.tell(error)
            return
        try:
            self._on_its_way(self._pipeline.finish_soon(waiting), waiting, again)
        except CheckreinError as error:
            self._looked_at(waiting, error, again=again)

    def _done(self, waiting: list[Outcome], again: bool, done: Future[None]) -> None:
        """Said by whoever wrote them, or could not."""
        try:
            self._looked_at(waiting, None if done.cancelled() else done.exception(), again=again)
        finally:
            self._handed.discard(done)

    def _looked_at(self, waiting: list[Outcome], error: BaseException | None, *, again: bool = False) -> None:
        if error is None:
            return
        refused = isinstance(error, CheckreinError)
        if len(waiting) > 1 and not refused:
            # INVARIANT: an outcome that cannot be written down takes no other one's along.
            for each in waiting:
                self._hand_over([each])
            return
        if not again:
            self._say(f"{len(waiting)} outcome(s) could not be recorded: {type(error).__name__}: {error}")
        failures = [each for each in waiting if each.outcome == "failure"]
        if refused and failures:
            # INVARIANT: trust is never higher because the store was full for a while.
            self._owed.extend(failures)
            self._soon(partial(self._flush_in, AGAIN_SECONDS))
        elif failures and failures[0].output is not None:
            # INVARIANT: nor because of what a tool said while it failed.
            self._hand_over([msgspec.structs.replace(failures[0], output=None)], again=True)

    def _soon(self, what: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and this with it
                self._loop.call_soon_threadsafe(what)

    async def close(self) -> None:
        """Wait until everything is on the record, or known not to be."""
        self.flush()
        while handed := list(self._handed):
            await asyncio.gather(*map(asyncio.wrap_future, handed), return_exceptions=True)
            await asyncio.sleep(0)
        if self._timer is not None:
            self._timer.cancel()


def _filed(_error: BaseException | None) -> None:
    """What could not be filed now is filed with the next."""
