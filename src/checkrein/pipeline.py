"""The product on one screen: classify, decide, record; then answer, finish, and learn from the outcome.

Doors call this and nothing below it. Every method returns after what it did is recorded.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from checkrein import earning
from checkrein.answering import Answering
from checkrein.approval.broker import Broker
from checkrein.asking import Asking
from checkrein.call import Reason, Risk, ToolCall, Verdict
from checkrein.errors import CheckreinError
from checkrein.finishing import Finishing, Outcome
from checkrein.judged import Asks, Considered, Decided, Hold, Judged, UsedUp
from checkrein.judging import Judging
from checkrein.ledger import mirror
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.record import Ledger, new_id
from checkrein.policies import InForce, Policies
from checkrein.policy import UNKNOWN_RISK, refuse
from checkrein.recording import Recording
from checkrein.store import Store, Transaction

_NO_BOOK = earning.Book({}, {}, 0.0)


class Pipeline:
    """One authority over one store."""

    def __init__(
        self,
        store: Store,
        state: Path,
        *,
        overrides: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
        policies: Policies | None = None,
    ) -> None:
        self.store, self.clock = store, clock
        self.policies, self.broker = policies or Policies(store, overrides), Broker(store)
        self.ledger = Ledger(store, Signer(state), clock)
        self.asking = Asking(store, self.ledger, self.broker, clock)
        self.mirror = mirror.Mirror(
            store,
            lambda project: mirror.folder_for(
                project, self.policies.of(project).settings.audit.log_dir, state
            ),
            lambda project: mirror.default_folder(project, state),
            self.ledger.recent,
        )
        self._judging = Judging(store, self.policies, self.asking, clock)
        self.sessions, self.books = self._judging.sessions, self._judging.books
        self._recording = Recording(store, self.ledger, self.mirror, self.asking, self.broker, self.sessions)
        # What holds now, for who records nothing; and what a person said, recorded.
        self.judge, self.phase_of = self._judging.judge, self._judging.phase_of
        self.answer = Answering(
            store, self.policies, self.broker, self.asking, self._judging, self._recording
        ).answer
        self._finishes = Finishing(self.policies, self.ledger, self.mirror, clock)
        self.ledger.open(store)
        self.mirror.catch_up()

    def decide(
        self,
        call: ToolCall,
        *,
        phase: str | None = "building",
        released: bool = False,
        hold: Hold = "",
        asking: Asks = False,
    ) -> Decided:
        """Judge a call and record the verdict. Never raises: whatever goes wrong is a refusal.

        `hold`: why a person is asked although the call would run. `asking`: an ask becomes a question that
        waits for its answer; without it, it is a verdict only.
        """
        considered = self.consider(call, phase=phase, released=released, hold=hold, asking=asking)
        return considered if isinstance(considered, Decided) else self.settle(considered)

    def consider(
        self,
        call: ToolCall,
        *,
        phase: str | None = "building",
        released: bool = False,
        hold: Hold = "",
        asking: Asks = False,
        force: Callable[[], InForce] | None = None,
    ) -> Considered | Decided:
        """The first half of `decide`: the verdict, which nobody may hear before `settle` recorded it.

        `force`: what holds at this moment, for who has looked it up already.
        """
        again = partial(self.decide, call, phase=phase, released=released, hold=hold, asking=asking)
        entry = new_id(self.clock())
        try:
            judged = self.judge(call, phase=phase, released=released, force=force)
            why = "" if judged.verdict.word != "allow" else hold if isinstance(hold, str) else hold(judged)
            if why:
                # INVARIANT: a call that is held uses up no yes a person gave before.
                judged = msgspec.structs.replace(judged, verdict=_held(judged.verdict, why), consent=None)
            # Whether anybody can be asked is found out only where somebody must be.
            asks = judged.verdict.word == "ask" and (asking if isinstance(asking, bool) else asking())
            if asks:
                judged = self._judging.worth_asking(call, judged)
        except Exception as error:  # noqa: BLE001 - INVARIANT: what cannot be judged is refused
            return self._unjudged(entry, call, error, again)
        return Considered(entry, call, judged, asks and judged.verdict.word == "ask", again)

    def _unjudged(
        self, entry: str, call: ToolCall, error: Exception, again: Callable[[], Decided]
    ) -> Considered | Decided:
        """A refusal on its way to the record, like any other; without one only where that fails too."""
        try:
            force = self.policies.of(call.project, call.door, profile=call.profile)
        except Exception:  # noqa: BLE001 - what was wrong first is what is said
            return Decided(entry, _unrecorded(UNKNOWN_RISK, error))
        text, remedy = _explained(error)
        verdict = refuse("judge", f"The call could not be judged: {text}", remedy, UNKNOWN_RISK)
        return Considered(entry, call, Judged(verdict, force, _NO_BOOK), False, again)

    def settle(self, considered: Considered) -> Decided:
        """The second half of `decide`: record the verdict, then let it leave."""
        entry, judged = considered.entry, considered.judged
        try:
            self._recording.settle(entry, considered.call, judged, considered.asking)
            return Decided(entry, judged.verdict, considered.asking)
        except UsedUp:
            return considered.again()
        except Exception as error:  # noqa: BLE001 - INVARIANT: if recording fails, the verdict is deny
            return Decided(entry, _unrecorded(judged.verdict.risk, error))

    def settling(self, considered: Considered) -> Callable[[Transaction], None]:
        """`settle` for who must not wait: the work that records a verdict; `settled` says what it is then.

        For plain verdicts (`judged.alone`) only: what may have to be decided again is settled in a thread.
        """
        entry, call, judged = considered.entry, considered.call, considered.judged
        return lambda tx: self._recording.record(tx, entry, call, judged, False)

    def settled(self, considered: Considered, error: BaseException | None) -> Decided:
        """The verdict, once the work of `settling` is committed or has failed."""
        entry, verdict = considered.entry, considered.judged.verdict
        if error is not None:
            # INVARIANT: if recording fails, the verdict is deny.
            return Decided(entry, _unrecorded(verdict.risk, error))
        self.sessions.note(considered.call.session, verdict)
        return Decided(entry, verdict)

    def refuse(
        self, call: ToolCall, stage: str, reason: str, remedy: str, risk: Risk = UNKNOWN_RISK
    ) -> Decided:
        """Record a refusal that needs no judging."""
        entry = new_id(self.clock())
        verdict = refuse(stage, reason, remedy, risk)
        try:
            force = self.policies.of(call.project, call.door, profile=call.profile)
            self._recording.settle(entry, call, Judged(verdict, force, _NO_BOOK), False)
        except Exception as error:  # noqa: BLE001 - it is refused all the same
            return Decided(entry, _unrecorded(risk, error))
        return Decided(entry, verdict)

    def start(self, entry: str) -> None:
        """Record that an allowed call began to run."""
        self._recording.follow_up(entry, "started", lambda _tx, _found: {})

    def begin(self, entry: str) -> bool:
        """Take a yes to exactly one call: whether it is there, and nobody took it before."""
        taken: list[bool] = []

        def start(_tx: Transaction, found: Entry) -> dict[str, Any] | None:
            # INVARIANT: a yes lets one call run, whoever comes back for it, and however often.
            free = found.answer == "approved" and found.started_at is None and found.completed_at is None
            taken[:] = [free]
            return {} if free else None

        self._recording.follow_up(entry, "started", start, durable=True)
        return taken[0]

    def finish(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        """Record an outcome and learn from it, in one transaction. Reported twice, it counts once."""
        finished = [Outcome(entry, outcome, output, evidence)]
        self.store.write(self._finishes.work(finished, missing=True))

    def finishing(self, outcomes: Sequence[Outcome]) -> Callable[[Transaction], None]:
        """The same for several calls at once, as work for a store; until it is done, a fate is unknown."""
        return self._finishes.work(outcomes, missing=False)

    def finish_soon(self, outcomes: Sequence[Outcome]) -> Future[None]:
        """The same, without waiting."""
        return self.store.submit(self.finishing(outcomes))

    def start_session(self, project: str, session: str, agent: str = "") -> None:
        """Record a session's begin and wake the domains that slept too long."""

        def begin(tx: Transaction) -> None:
            woken = earning.begin_session(tx, project, self.policies.of(project).settings, self.clock())
            data = {"project": project, "session": session, "agent": agent, "warming_up": woken}
            self.ledger.append(tx, "session_started", data)

        self.store.write(begin)
        self.mirror.expire(project, self.policies.of(project).settings.retention.mirror_days, self.clock())

    def end_session(self, project: str, session: str) -> None:
        """Record a session's end; calls still without an outcome get their daily line as pending."""

        def end(tx: Transaction) -> None:
            for entry in _unsettled(tx, session):
                self.ledger.append(tx, "closed", {"project": project, "session": session}, entry=entry)
            self.ledger.append(tx, "session_ended", {"project": project, "session": session})
            self.mirror.follow(tx)

        self.store.write(end, durable=True)

    def note(self, kind: str, data: dict[str, Any], work: Callable[[Transaction], Any] | None = None) -> None:
        """A person's change (a rule, an accepted policy, imported trust) and its record, as one."""

        def change(tx: Transaction) -> None:
            if work is not None:
                work(tx)
            self.ledger.append(tx, kind, data)

        self.store.write(change, durable=True)

    def close(self) -> None:
        """Sign the head, remember how far the mirror got, and let go of the store."""

        with contextlib.suppress(CheckreinError):
            self.mirror.close()

        def last(tx: Transaction) -> None:
            self.mirror.remember(tx)
            self.ledger.file(tx)
            self.ledger.checkpoint(tx)

        # A full disk or a broken chain costs the signature, not the way out.
        with contextlib.suppress(CheckreinError):
            self.store.write(last, durable=True)
        self.store.close()


def _held(verdict: Verdict, why: str) -> Verdict:
    """The same verdict, but a person is asked first."""
    remedy = "Answer the question."
    return msgspec.structs.replace(
        verdict,
        decision="human_required",
        stage="hold",
        reasons=(Reason(why), *verdict.reasons),
        remedy=remedy,
        rule=None,
    )


def _unrecorded(risk: Risk, error: BaseException) -> Verdict:
    text, remedy = _explained(error)
    return refuse("record", f"The call could not be judged and recorded: {text}", remedy, risk)


def _explained(error: BaseException) -> tuple[str, str]:
    """What went wrong, and what to do about it."""
    if isinstance(error, CheckreinError):
        return error.message, error.remedy
    return f"{type(error).__name__}: {error}", "Report this; such calls are refused until then."


def _unsettled(tx: Transaction, session: str) -> list[str]:
    """Calls of a session that have no daily line yet, oldest first."""
    return [each.id for each in entries(tx, Filter(session=session)) if each.settled_by is None][::-1]
