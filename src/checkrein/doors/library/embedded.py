"""An authority of the program's own: a store, a chain and a lock in one folder, in this process."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkrein import warm
from checkrein.agents import Agents, own_user
from checkrein.asking import Remember
from checkrein.authority import Asked, myself, paused, question
from checkrein.authority.library import DOOR
from checkrein.authority.taken import Taken, may_report, take
from checkrein.authority.wish import Wish, decide, evaluate
from checkrein.call import ToolCall
from checkrein.core import approvals
from checkrein.core.approvals import Settled
from checkrein.core.decision import Decided, Evaluation
from checkrein.doors.library.reports import Reports
from checkrein.errors import CheckreinError, StoreBusyError, StoreError
from checkrein.finishing import About, Outcome
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce, Policies
from checkrein.policy import refuse
from checkrein.settings import Settings
from checkrein.settings.sources import Loaded, with_overrides
from checkrein.store import Reader
from checkrein.store.sqlite import SqliteStore

CHANNEL = "host"
LOCK_SECONDS = 3.0
# How many of the newest calls are looked through for those whose program ended before they did.
_LOOK_BACK = 1_000
# Calls under way that need not be looked up when they end; of more, the record knows.
_MOST_BEGUN = 4_096


class _Ours(InForce, frozen=True):
    """What holds in a store of its own, whose folder is no place for tools."""

    folder: str = ""

    def own_folders(self, project: str) -> tuple[str, ...]:
        return (*super().own_folders(project), self.folder)


class _Policies(Policies):
    def __init__(self, reader: Reader, overrides: Sequence[str], folder: Path, alone: bool) -> None:
        super().__init__(reader, overrides)
        self._folder, self._alone = os.path.realpath(folder), alone

    def loaded(self, project: str) -> Loaded:
        """The settings files as they are now; none of them where the program's tests want to be alone."""
        if not self._alone:
            return super().loaded(project)
        try:
            return Loaded(with_overrides(Settings(), self._overrides))
        except CheckreinError as error:
            return Loaded(Settings(), fault=str(error), error=error)

    def _compile(self, project: str, door: str, phase: str | None, profile: str) -> InForce:
        found = super()._compile(project, door, phase, profile)
        return _Ours(**msgspec.structs.asdict(found), folder=self._folder)


class Embedded:
    """One pipeline, in this process, for this process alone."""

    # Deciding and reporting are quick enough to be done on an event loop.
    near = True

    def __init__(
        self,
        folder: Path,
        *,
        settings: Sequence[str] = (),
        clock: Callable[[], float] | None = None,
        alone: bool = False,
    ) -> None:
        """`settings`: as after `--set`. `alone`: no settings file of the user or the project counts."""
        try:
            store = SqliteStore.open(folder, wait=LOCK_SECONDS)
        except StoreBusyError as error:
            remedy = "Give each program a folder of its own, or share the server: Gate(server=True)."
            raise StoreBusyError(error.message, remedy=remedy) from None
        self.folder, self.user = folder, own_user()
        # INVARIANT: no tool changes the record that judges it.
        policies = _Policies(store, settings, folder, alone)
        self.pipeline = Pipeline(
            store, folder, clock=clock or time.time, policies=policies, witness=not alone
        )
        self._begun: dict[str, About] = {}
        self._reports = Reports(self._record)
        self._process, self._closed = os.getpid(), False
        # A program that ends without closing its gate still reports what it did.
        atexit.register(self.close)
        warm.ready()
        with contextlib.suppress(CheckreinError):
            # A record that cannot be signed refuses calls, each with the reason.
            self.pipeline.ledger.keep_signed()
        approvals.sweep(self.pipeline)
        approvals.end_left_behind(self.pipeline, DOOR, "the program ended")

    def first(self, call: ToolCall, wish: Wish, phase: str) -> Decided | Callable[[], Decided]:
        """The verdict, or (where recording it waits for the disk) how to come to it."""
        try:
            self._here()
            evaluation = evaluate(self.pipeline, call, wish, phase)
        except CheckreinError as error:
            # INVARIANT: a call that cannot be judged is refused.
            return Decided("", refuse("record", error.message, error.remedy or "Look at the store."))
        if evaluation.plain and (decided := self.pipeline.commit(evaluation)) is not None:
            return self._began(call, decided)
        return lambda: self._began(call, self._committed(evaluation, wish))

    def _committed(self, evaluation: Evaluation, wish: Wish) -> Decided:
        """The verdict, recorded; evaluated again where another call took what it rests on."""
        request = evaluation.request
        return self.pipeline.commit(evaluation) or decide(
            self.pipeline, request.call, wish, request.phase or ""
        )

    def _here(self) -> None:
        # INVARIANT: a forked process shares no store with its parent.
        if os.getpid() != self._process:
            why = "This process was forked from the one that has the store open."
            raise StoreError(why, remedy="Open a gate in each process.")

    def _began(self, call: ToolCall, decided: Decided) -> Decided:
        """What an allowed call's outcome will be about, so that it need not be looked up."""
        if decided.verdict.word == "allow":
            while len(self._begun) >= _MOST_BEGUN:
                self._begun.pop(next(iter(self._begun)), None)
            domains, now = decided.verdict.risk.domains, self.pipeline.clock()
            self._begun[decided.entry] = About(call.project, call.session, domains, now)
        return decided

    def wait(
        self, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
    ) -> Settled | None:
        self._here()
        return approvals.wait(self.pipeline, entry, call, seconds, stop)

    def withdraw(self, entry: str, call: ToolCall, why: str) -> None:
        self._here()
        approvals.withdraw(self.pipeline, entry, call, why)

    def take(self, entry: str, call: ToolCall, phase: str, again: bool) -> Taken:
        self._here()
        return take(self.pipeline, entry, call, phase, again=again)

    def pause(self, entry: str, call: ToolCall, step: int, payload: Any, told: str) -> None:
        self._here()
        self._begun.pop(entry, None)
        paused.pause(self.pipeline, entry, call, step, payload, told=told)

    def go_on(self, entry: str, call: ToolCall, step: int, phase: str, again: bool, told: str) -> Taken:
        self._here()
        return paused.go_on(self.pipeline, entry, call, step, phase, again=again, told=told)

    def finish(self, entry: str, outcome: str, output: Any, evidence: str) -> None:
        self._here()
        # What is known is used once: a second word about a call is looked up and dropped.
        told = Outcome(entry, outcome, output, evidence, self._begun.pop(entry, None))
        if told.about is not None and outcome == "success":
            self._reports.add(told)
            return
        may_report(self.pipeline, entry, outcome)
        # INVARIANT: what costs trust is on the record before the next call is judged.
        self._reports.flush()
        self._record([told], missing=True)

    def flush(self) -> None:
        """Put every outcome there is on the record."""
        self._here()
        self._reports.flush()

    def _record(self, outcomes: Sequence[Outcome], *, missing: bool = False) -> None:
        if missing:
            self.pipeline.finish_all(outcomes)
        else:
            self.pipeline.store.write(self.pipeline.finishing(outcomes))

    def questions(self) -> list[dict[str, Any]]:
        self._here()
        pipeline = self.pipeline
        approvals.expire_all(pipeline)
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        found: list[dict[str, Any]] = question.list_(Asked(pipeline, agents, myself()), {})
        return found

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        call: ToolCall | None = None,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str:
        """What the program's own person says; what became of it."""
        self._here()
        pipeline = self.pipeline
        if call is not None:
            approvals.bound(pipeline, entry, call)
        actor = actor or self.user
        return pipeline.answer(
            entry, answer, actor=actor, channel=CHANNEL, message=message, edited=edited, remember=remember
        )

    def close(self) -> None:
        atexit.unregister(self.close)
        if os.getpid() == self._process and not self._closed:
            self._closed = True
            self._reports.close()
            self.pipeline.close()
