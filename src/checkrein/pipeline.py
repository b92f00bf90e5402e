"""The product on one screen: classify, decide, record; then answer, finish, and learn from the outcome.

Doors call this and nothing below it. Every method returns after what it did is recorded.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from checkrein import earning
from checkrein.answering import Answering
from checkrein.approval.broker import Broker
from checkrein.approval.question_calls import QuestionCalls
from checkrein.asking import Asking
from checkrein.call import Reason, Risk, ToolCall, Verdict
from checkrein.core.decision import Decided, DecisionRequest, Evaluation, Judged, UsedUp
from checkrein.core.entry_secrets import EntrySecrets
from checkrein.core.lifecycle import Event, State, state_of
from checkrein.errors import CheckreinError
from checkrein.finishing import Finishing, Outcome
from checkrein.judging import Judging
from checkrein.ledger import mirror
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.copies import Copies, newest_copy
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.record import Ledger, new_id
from checkrein.policies import Policies
from checkrein.policy import UNJUDGED, refuse
from checkrein.recording import Recording
from checkrein.store import Store, Transaction
from checkrein.store.questions import claim_question, drop_question, reopen_question
from checkrein.taint import why_held

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
        witness: bool = True,
    ) -> None:
        """`witness`: copy the newest checkpoint to the user's configuration folder as well."""
        self.store, self.clock = store, clock
        self.policies, question_calls = policies or Policies(store, overrides), QuestionCalls(store, state)
        self.broker = Broker(store, question_calls)
        copies = Copies(state, newest_copy(state) if witness else None)
        self.ledger = Ledger(store, Signer(state), clock, copies=copies)
        self.asking = Asking(store, self.ledger, question_calls, clock)
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
        self.secrets = EntrySecrets(question_calls)
        self._recording = Recording(store, self.ledger, self.mirror, self.asking, self.sessions, self.secrets)
        # What holds now, for who records nothing; and what a person said, recorded.
        self.judge, self.phase_of = self._judging.judge, self._judging.phase_of
        self.answer = Answering(
            store,
            self.policies,
            self.broker,
            self.asking,
            self._judging,
            self._recording,
            self.secrets,
        ).answer
        self._finishes = Finishing(self.policies, self.ledger, self.mirror, clock, self.secrets)
        self.ledger.open(store)
        self.mirror.catch_up()

    def decide(
        self,
        call: ToolCall,
        *,
        phase: str | None = "building",
        released: bool = False,
        ask_reason: str = "",
        asking: bool = False,
    ) -> Decided:
        """Judge a call and record the verdict. Never raises: whatever goes wrong is a refusal.

        `ask_reason`: why a person is asked although policy allows the call. `asking`: an ask opens a
        question; without it nobody can be asked, and the call is over.
        """
        request = DecisionRequest(call, phase, ask_reason=ask_reason, released=released)
        while True:
            evaluation = self.evaluate(request)
            if asking:
                evaluation = self.add_question(evaluation)
            if (decided := self.commit(evaluation)) is not None:
                return decided

    def evaluate(self, request: DecisionRequest) -> Evaluation:
        """Return the verdict of this moment. Records nothing. An error is a refusal, never an exception."""
        call, entry = request.call, new_id(self.clock())
        try:
            judged = self.judge(call, phase=request.phase, released=request.released, policy=request.policy)
            if judged.verdict.word == "allow" and (
                why := request.ask_reason or why_held(call, judged, request.tainted_by)
            ):
                # INVARIANT: a call that is held uses up no yes a person gave before.
                judged = msgspec.structs.replace(judged, verdict=_held(judged.verdict, why), consent=None)
        except Exception as error:  # noqa: BLE001 - INVARIANT: what cannot be judged is refused
            return self._unjudged(entry, request, error)
        return Evaluation(entry, request, judged.verdict, judged)

    def add_question(self, evaluation: Evaluation) -> Evaluation:
        """Have an ask open a question, or refuse it: just denied by a person, or too many are open."""
        judged = evaluation.judged
        if judged is None or judged.verdict.word != "ask":
            return evaluation
        try:
            judged = self._judging.worth_asking(evaluation.request.call, judged)
        except Exception as error:  # noqa: BLE001 - what cannot be judged is refused
            return self._unjudged(evaluation.entry, evaluation.request, error)
        asks = judged.verdict.word == "ask"
        return msgspec.structs.replace(evaluation, verdict=judged.verdict, judged=judged, asks=asks)

    def _unjudged(self, entry: str, request: DecisionRequest, error: Exception) -> Evaluation:
        """A refusal on its way to the record, like any other; without one only where that fails too."""
        call = request.call
        try:
            force = self.policies.of(call.project, call.door, profile=call.profile)
        except Exception:  # noqa: BLE001 - what was wrong first is what is said
            return Evaluation(entry, request, _unrecorded(UNJUDGED, error), None)
        text, remedy = _explained(error)
        verdict = refuse("judge", f"The call could not be judged: {text}", remedy, UNJUDGED)
        return Evaluation(entry, request, verdict, Judged(verdict, force, _NO_BOOK))

    def commit(self, evaluation: Evaluation) -> Decided | None:
        """Record the verdict, then return it. None: its grant was used up meanwhile; evaluate again."""
        entry, judged = evaluation.entry, evaluation.judged
        if judged is None:
            return Decided(entry, evaluation.verdict)
        try:
            self._recording.settle(entry, evaluation.request, judged, evaluation.asks)
            return Decided(entry, judged.verdict, evaluation.asks)
        except UsedUp:
            return None
        except Exception as error:  # noqa: BLE001 - INVARIANT: if recording fails, the verdict is deny
            return Decided(entry, _unrecorded(judged.verdict.risk, error))

    def commit_work(self, evaluation: Evaluation) -> Callable[[Transaction], None]:
        """`commit` for who must not wait: the work that records a verdict; `committed` gives the result.

        For plain verdicts only: what may have to be evaluated again is committed in a thread.
        """
        entry, request, judged = evaluation.entry, evaluation.request, evaluation.judged
        if judged is None or not evaluation.plain:
            raise ValueError("only a plain verdict is committed this way")
        return lambda tx: self._recording.record(tx, entry, request, judged, False)

    def committed(self, evaluation: Evaluation, error: BaseException | None) -> Decided:
        """The verdict, once its `commit_work` is committed or has failed."""
        entry, verdict = evaluation.entry, evaluation.verdict
        if error is not None:
            # INVARIANT: if recording fails, the verdict is deny.
            return Decided(entry, _unrecorded(verdict.risk, error))
        self.sessions.note(evaluation.request.call.session, verdict)
        return Decided(entry, verdict)

    def refuse(self, call: ToolCall, stage: str, reason: str, remedy: str, risk: Risk = UNJUDGED) -> Decided:
        """Record a refusal that needs no judging."""
        entry = new_id(self.clock())
        verdict = refuse(stage, reason, remedy, risk)
        try:
            force = self.policies.of(call.project, call.door, profile=call.profile)
            self._recording.settle(entry, DecisionRequest(call), Judged(verdict, force, _NO_BOOK), False)
        except Exception as error:  # noqa: BLE001 - it is refused all the same
            return Decided(entry, _unrecorded(risk, error))
        return Decided(entry, verdict)

    def claim(self, entry: str) -> bool:
        """Take an approval for its one run: whether it was given, and not taken or ended before."""
        # INVARIANT: a yes lets one call run, whoever comes back for it, and however often.
        return self._recording.follow_up(
            entry,
            Event.claim,
            lambda tx, _found: {} if claim_question(tx, entry, self.clock()) else None,
            durable=True,
        )

    def repeat(self, entry: str) -> bool:
        """Record that a claimed call runs again: its outcome is not known, and twice does no harm."""

        def again(tx: Transaction, _found: Entry) -> dict[str, Any]:
            reopen_question(tx, entry)
            return {}

        return self._recording.follow_up(entry, Event.repeat, again, durable=True)

    def drop(self, entry: str, *, evidence: str, reason: str) -> bool:
        """End an approval that will not be used, with the reason; False if its call has begun or is over."""

        def end(tx: Transaction, found: Entry) -> dict[str, Any] | None:
            dropped = drop_question(tx, entry, self.clock())
            return self._finishes.dropped(found, evidence, reason) if dropped else None

        return self._recording.follow_up(entry, Event.drop, end, durable=True)

    def finish(
        self,
        entry: str,
        outcome: str,
        *,
        output: Any = None,
        evidence: str = "",
        arguments: dict[str, Any] | None = None,
        earns: bool = True,
    ) -> None:
        """Record an outcome and learn from it, in one transaction. Reported twice, it counts once.

        `arguments`: the call's, where they are at hand; its secrets are masked in the output. `earns`:
        whether a success raises trust.
        """
        finished = [Outcome(entry, outcome, output, evidence, arguments=arguments, earns=earns)]
        self.finish_all(finished)

    def finish_all(self, outcomes: Sequence[Outcome]) -> None:
        """The same for several calls, each of which must be on the record."""
        self.store.write(self._finishes.work(outcomes, missing=True))

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
        """Close and sign the record, remember how far the mirror got, and let go of the store."""

        with contextlib.suppress(CheckreinError):
            self.mirror.close()

        def last(tx: Transaction) -> None:
            self.mirror.remember(tx)
            self.ledger.file(tx)

        # A full disk, a broken chain or a key that cannot be read costs the signature, not the way out.
        for work in (self.ledger.close, last):
            with contextlib.suppress(CheckreinError):
                self.store.write(work, durable=True)
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
    """Calls of a session that have no daily line yet, oldest first; a question still gets its own."""
    open_calls = (each for each in entries(tx, Filter(session=session)) if each.settled_by is None)
    return [each.id for each in open_calls if state_of(each) is not State.asked][::-1]
