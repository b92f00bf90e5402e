"""What became of calls, handed to the record a few at a time: no result waits for it.

Until it is recorded a call's fate counts as unknown, which is also what a crash in between leaves behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from checkrein.errors import CheckreinError
from checkrein.finishing import About, Outcome
from checkrein.pipeline import Pipeline
from checkrein.store import Offer

SECONDS = 0.05
MOST = 256
# Fewer than this are not worth going along with others.
FEW = 8


class Outcomes:
    """Collects outcomes for a moment. Lives on the gateway's loop."""

    def __init__(self, pipeline: Pipeline, say: Callable[[str], None]) -> None:
        self._pipeline, self._say = pipeline, say
        self._waiting: list[Outcome] = []
        self._begun: dict[str, About] = {}
        self._timer: asyncio.TimerHandle | None = None

    def began(self, entry: str, about: About) -> None:
        """A call was just allowed: what its outcome will be about."""
        self._begun[entry] = about

    def add(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        # INVARIANT: what is known is used once, so that a second word about a call is looked up and dropped.
        self._waiting.append(Outcome(entry, outcome, output, evidence, self._begun.pop(entry, None)))
        if len(self._waiting) >= MOST:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self.flush)

    def flush(self) -> Future[None] | None:
        """Hand over what there is; whoever must know waits for the future."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        return self._hand_over(waiting) if waiting else None

    def along(self) -> list[Offer]:
        """What there is to do, for a crowd that writes anyway: nobody else then writes beside it."""
        ledger, found = self._pipeline.ledger, list[Offer]()
        if len(self._waiting) >= FEW:
            # The timer stays: what comes meanwhile may not find company.
            waiting, self._waiting = self._waiting, []
            tell = partial(self._looked_at, waiting)
            found.append(Offer(self._pipeline.finishing(waiting), tell))
        if ledger.worth_filing:
            found.append(Offer(ledger.file, _filed))
        return found

    def _hand_over(self, waiting: list[Outcome]) -> Future[None] | None:
        try:
            done = self._pipeline.finish_soon(waiting)
        except CheckreinError as error:
            self._say(f"{len(waiting)} outcome(s) could not be recorded: {error}")
            return None
        done.add_done_callback(lambda done: self._looked_at(waiting, done.exception()))
        return done

    def _looked_at(self, waiting: list[Outcome], error: BaseException | None) -> None:
        if error is None:
            return
        if len(waiting) > 1 and not isinstance(error, CheckreinError):
            # INVARIANT: an outcome that cannot be written down takes no other one's along.
            for each in waiting:
                self._hand_over([each])
            return
        self._say(f"{len(waiting)} outcome(s) could not be recorded: {type(error).__name__}: {error}")

    async def close(self) -> None:
        """Wait until everything is on the record, or known not to be."""
        done = self.flush()
        if done is not None:
            await asyncio.gather(asyncio.wrap_future(done), return_exceptions=True)


def _filed(_error: BaseException | None) -> None:
    """What could not be filed now is filed with the next."""
