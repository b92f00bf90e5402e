"""The product on one screen: classify, decide, record; then answer, finish, and learn from the outcome.

Doors call this and nothing below it. Every method returns after what it did is recorded.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from checkrein import earning
from checkrein.approval.broker import Broker
from checkrein.asking import (
    IN_THE_AGENT,
    OVERRULED,
    Answerer,
    Asking,
    Remember,
    consented,
)
from checkrein.call import Reason, Risk, ToolCall, Verdict, reason_lines
from checkrein.errors import CheckreinError, ConflictError, InputError, NotFoundError
from checkrein.finishing import Finishing, Outcome, known
from checkrein.judged import Asks, Considered, Decided, Hold, Judged, UsedUp, on_the_disk
from checkrein.ledger import events, mirror
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.record import Ledger, new_id
from checkrein.ledger.terms import terms_of
from checkrein.memory import Memory
from checkrein.policies import InForce, Policies
from checkrein.policy import UNKNOWN_RISK, decide, refuse
from checkrein.repeats import Given, Repeats
from checkrein.sessions import Sessions
from checkrein.store import Store, Transaction, records
from checkrein.store.phases import phase_for
from checkrein.store.questions import get_question
from checkrein.store.rules import use_rule

ANSWERS = ("approved", "denied", "answered", "expired", "cancelled")
PHASES_KEPT = 4096
_NO_BOOK = earning.Book({}, {}, 0.0)
FollowUp = Callable[[Transaction, Entry], dict[str, Any] | None]


class Pipeline:
    """One authority over one store."""

    def __init__(
        self,
        store: Store,
        state: Path,
        *,
        overrides: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.clock = store, clock
        self.policies, self.sessions = Policies(store, overrides), Sessions(store)
        self.broker, self.memory, self.repeats = Broker(store), Memory(), Repeats()
        self.books = earning.Books(store)
        self._phases: tuple[int | None, dict[tuple[str, str], str | None]] = (None, {})
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
                judged = self._worth_asking(call, judged)
        except Exception as error:  # noqa: BLE001 - INVARIANT: what cannot be judged is refused
            return Decided(entry, _unrecorded(UNKNOWN_RISK, error))
        return Considered(entry, call, judged, asks and judged.verdict.word == "ask", again)

    def settle(self, considered: Considered) -> Decided:
        """The second half of `decide`: record the verdict, then let it leave."""
        entry, judged = considered.entry, considered.judged
        try:
            self._settle(entry, considered.call, judged, considered.asking)
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
        return lambda tx: self._record(tx, entry, call, judged, False)

    def settled(self, considered: Considered, error: BaseException | None) -> Decided:
        """The verdict, once the work of `settling` is committed or has failed."""
        entry, verdict = considered.entry, considered.judged.verdict
        if error is not None:
            # INVARIANT: if recording fails, the verdict is deny.
            return Decided(entry, _unrecorded(verdict.risk, error))
        self.sessions.note(considered.call.session, verdict)
        return Decided(entry, verdict)

    def judge(
        self,
        call: ToolCall,
        *,
        phase: str | None = "building",
        released: bool = False,
        approved: bool = False,
        force: Callable[[], InForce] | None = None,
    ) -> Judged:
        """The verdict of this moment, recorded nowhere. What a person said yes to before needs no new one."""
        holds = force() if force else self.policies.of(call.project, call.door, phase, call.profile)
        return self._judged(call, holds, released, approved)

    def _judged(self, call: ToolCall, force: InForce, released: bool, approved: bool) -> Judged:
        if not call.history and (before := self.sessions.history(call.session)):
            call = msgspec.structs.replace(call, history=before)
        usual = not released and not approved
        now, trust = self.clock(), self.store.writes_to("trust")
        if usual and (again := self.repeats.find(call, force, trust, now)):
            return Judged(again.verdict, force, again.book)
        known = self.memory.known(call, force.tables, force.own_folders(call.project))
        risk = known.risk
        book = self.books.of(call.project, force.settings, risk.domains)

        def verdict(released: bool, approved: bool) -> Verdict:
            scores = book.scores(earning.model_for(force.settings), now)
            return decide(
                call,
                risk,
                force.policy,
                scores,
                now=now,
                resolve=os.path.realpath,
                released=released,
                approved=approved,
            )

        found = self.repeats.get(call, risk, force, book, now) if usual else None
        if found is None:
            found = verdict(released, approved)
            if usual:
                self.repeats.keep(call, known, Given(force, book, now, found), trust)
        consent = None
        if found.word == "ask" and (consent := self.asking.grant(call, risk)):
            found = consented(verdict(released, True), consent)
        elif found.stage == "floor" and risk is not UNKNOWN_RISK and (consent := self.asking.release(call)):
            found = consented(verdict(True, approved), consent)
        return Judged(found, force, book, consent if found.word == "allow" else None)

    def _worth_asking(self, call: ToolCall, judged: Judged) -> Judged:
        """A question, or the refusal in its place: people are not asked the same again, nor flooded."""
        needless = self.asking.needless(call, judged.verdict, judged.force.settings.approval)
        return msgspec.structs.replace(judged, verdict=needless) if needless else judged

    def refuse(
        self, call: ToolCall, stage: str, reason: str, remedy: str, risk: Risk = UNKNOWN_RISK
    ) -> Decided:
        """Record a refusal that needs no judging."""
        entry = new_id(self.clock())
        verdict = refuse(stage, reason, remedy, risk)
        try:
            force = self.policies.of(call.project, call.door, profile=call.profile)
            self._settle(entry, call, Judged(verdict, force, _NO_BOOK), False)
        except Exception as error:  # noqa: BLE001 - it is refused all the same
            return Decided(entry, _unrecorded(risk, error))
        return Decided(entry, verdict)

    def phase_of(self, project: str, session: str) -> str | None:
        """The phase a person set for the session, the project or everything; none is the strictest."""
        writes = self.store.writes_to("phase")
        if writes is None or writes != self._phases[0] or len(self._phases[1]) > PHASES_KEPT:
            self._phases = writes, {}
        known = self._phases[1]
        if (project, session) not in known:
            known[project, session] = phase_for(self.store, project, session)
        return known[project, session]

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        actor: str,
        channel: str,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
    ) -> str:
        """Record what a person said to a question; what became of it (a new deny outranks a yes).

        It holds for all open questions about exactly the same call, but in conversations and scripts.
        """
        known(answer, ANSWERS, "answer")
        if remember and answer != "approved":
            raise InputError("Only a yes can be remembered.", remedy="Write a rule: `checkrein rules add`.")
        call = self.broker.call(entry)
        # What was answered in the agent's own dialog has run: the record says so, whatever holds by now.
        if answer == "approved" and (channel != IN_THE_AGENT or self.broker.is_awaited(entry)):
            overruled = self._overruled(entry, call, edited)
            answer, message = ("denied", overruled) if overruled else (answer, message)
        redactor = self.policies.of(self._project_of(entry, call)).redactor
        # INVARIANT: what people say is masked before it is kept, as what agents say is.
        data = {"answer": answer, "actor": actor, "channel": channel, "message": redactor.text(message)}
        # INVARIANT: what is remembered is what was approved, not what was asked for.
        approved = self.broker.edit(entry, edited) if edited is not None else call
        if answer == "approved" and edited is not None and approved is not None:
            data["edited"], data["edited_hash"] = redactor.value(edited), approved.argument_hash
        risk = self.judge(approved).verdict.risk if remember and approved else None
        if remember and risk is None:
            raise InputError("Nobody waits for this call any more, so it cannot be remembered.")
        by, also = Answerer(actor, channel, redactor.text), list[str]()

        def answered(tx: Transaction, found: Entry) -> dict[str, Any]:
            # INVARIANT: only a question is answered, and the first answer stands.
            if found.verdict != "ask" or found.answer is not None or found.completed_at is not None:
                raise ConflictError(f"{entry} waits for no answer.", remedy="See `checkrein audit show`.")
            also[:] = self.asking.settle(tx, entry, data)
            if answer == "approved" and remember and approved and risk:
                data["grant"] = self.asking.remember(tx, entry, approved, risk, remember, by).id
            return data

        with self.broker.settling():
            self._follow_up(entry, "answered", answered, durable=True)
            self.broker.settled(entry, edited if answer == "approved" else None)
            for each in also:
                self.broker.settled(each)
        return answer

    def _overruled(self, entry: str, call: ToolCall | None, edited: dict[str, Any] | None) -> str:
        """Why a yes does not count: the policy of this moment refuses the call."""
        if edited is not None:
            call = self.broker.edit(entry, edited)
            if call is None:
                raise InputError("Nobody waits for this call any more, so it cannot be edited.")
        if call is None:
            return ""
        phase = self.phase_of(call.project, call.session) if call.door == "hooks" else "building"
        verdict = self.judge(call, phase=phase, approved=True).verdict
        if verdict.word != "deny":
            return ""
        why = " ".join(reason_lines(verdict.reasons[:1]))
        if edited is not None:
            raise InputError(f"The edited call would be refused: {why}")
        return f"{OVERRULED} {why}"

    def _project_of(self, entry: str, call: ToolCall | None) -> str:
        asked = None if call else get_question(self.store, entry)
        return call.project if call else asked.project if asked else ""

    def start(self, entry: str) -> None:
        """Record that an allowed call began to run."""
        self._follow_up(entry, "started", lambda _tx, _found: {})

    def begin(self, entry: str) -> bool:
        """Take a yes to exactly one call: whether it is there, and nobody took it before."""
        taken: list[bool] = []

        def start(_tx: Transaction, found: Entry) -> dict[str, Any] | None:
            # INVARIANT: a yes lets one call run, whoever comes back for it, and however often.
            free = found.answer == "approved" and found.started_at is None and found.completed_at is None
            taken[:] = [free]
            return {} if free else None

        self._follow_up(entry, "started", start, durable=True)
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

    def _settle(self, entry: str, call: ToolCall, judged: Judged, asking: bool) -> None:
        verdict = judged.verdict
        # INVARIANT: a verdict leaves only after its record is committed.
        self.store.write(
            lambda tx: self._record(tx, entry, call, judged, asking),
            durable=on_the_disk(verdict),
            alone=judged.alone,
        )
        self.sessions.note(call.session, verdict)
        if verdict.word == "ask" and asking:
            self.broker.keep(entry, call)

    def _record(self, tx: Transaction, entry: str, call: ToolCall, judged: Judged, asking: bool) -> None:
        verdict, force = judged.verdict, judged.force
        if verdict.rule in force.counted and not use_rule(tx, verdict.rule or ""):
            raise UsedUp
        # INVARIANT: a yes that counts its uses is used once for every call it lets pass.
        if judged.consent and not self.asking.use(tx, judged.consent):
            raise UsedUp
        if judged.book.bad:
            earning.set_aside(tx, self.ledger, call.project, judged.book.bad)
        data = events.decided(call, verdict, force.redactor, force.settings.retention.input_bytes)
        self.ledger.append(tx, "decided", data, entry=entry, terms=terms_of(data))
        if (
            verdict.word == "ask"
            and asking
            and not self.asking.ask(tx, entry, call, force.patience(call.door))
        ):
            raise UsedUp
        if verdict.word == "deny":
            self.mirror.follow(tx)

    def _follow_up(self, entry: str, kind: str, data_for: FollowUp, *, durable: bool = False) -> None:
        self.store.write(self._following(entry, kind, data_for), durable=durable)

    def _following(self, entry: str, kind: str, data_for: FollowUp) -> Callable[[Transaction], None]:
        def follow(tx: Transaction) -> None:
            found = fold(records.of_entries(tx, [entry]))
            if not found:
                raise NotFoundError(f"There is no call {entry!r}.")
            data = data_for(tx, found[0])
            if data is not None:
                self.ledger.append(tx, kind, data, entry=entry)
                self.mirror.follow(tx)

        return follow


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
    remedy = (
        error.remedy
        if isinstance(error, CheckreinError)
        else "Report this; such calls are refused until then."
    )
    text = error.message if isinstance(error, CheckreinError) else f"{type(error).__name__}: {error}"
    return refuse("record", f"The call could not be judged and recorded: {text}", remedy, risk)


def _unsettled(tx: Transaction, session: str) -> list[str]:
    """Calls of a session that have no daily line yet, oldest first."""
    return [each.id for each in entries(tx, Filter(session=session)) if each.settled_by is None][::-1]
