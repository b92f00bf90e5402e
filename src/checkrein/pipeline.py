"""The product on one screen: classify, decide, record; then answer, finish, and learn from the outcome.

Doors call this and nothing below it. Every method returns after what it did is recorded.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkrein import earning
from checkrein.call import OUTCOMES, Category, Risk, ToolCall, Verdict
from checkrein.classify import classify
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.ledger import events, mirror
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.record import Ledger, new_id
from checkrein.ledger.terms import terms_of
from checkrein.policies import InForce, Policies
from checkrein.policy import UNKNOWN_RISK, decide, refuse
from checkrein.sessions import Sessions
from checkrein.store import Store, Transaction, records
from checkrein.store.rules import use_rule

ANSWERS = ("approved", "denied", "expired", "cancelled")
FollowUp = Callable[[Transaction, Entry], dict[str, Any] | None]


class Decided(msgspec.Struct, frozen=True):
    """A verdict and the entry it is recorded under."""

    entry: str
    verdict: Verdict


class RuleUsedUp(Exception):  # noqa: N818 - not a fault: another call took the rule's last use
    pass


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
        self.ledger = Ledger(store, Signer(state), clock)
        self.mirror = mirror.Mirror(
            store,
            lambda project: mirror.folder_for(
                project, self.policies.of(project).settings.audit.log_dir, state
            ),
            lambda project: mirror.default_folder(project, state),
        )
        self.ledger.open(store)
        self.mirror.catch_up()

    def decide(self, call: ToolCall, *, phase: str | None = "building", released: bool = False) -> Decided:
        """Judge a call and record the verdict. Never raises: whatever goes wrong is a refusal."""
        entry = new_id(self.clock())
        risk = UNKNOWN_RISK
        try:
            force = self.policies.of(call.project, call.door, phase)
            if not call.history:
                call = msgspec.structs.replace(call, history=self.sessions.history(call.session))
            own = force.own_folders(call.project)
            risk = classify(call, tables=force.tables, resolve=os.path.realpath, own=own)
            book = earning.book(self.store, call.project, force.settings)
            now = self.clock()
            scores = book.scores(earning.model_for(force.settings), now)
            verdict = decide(
                call, risk, force.policy, scores, now=now, resolve=os.path.realpath, released=released
            )
            # INVARIANT: a verdict leaves only after its record is committed.
            self.store.write(
                lambda tx: self._record(tx, entry, call, verdict, force, book), durable=_durable(verdict)
            )
            self.sessions.note(call.session, verdict)
            return Decided(entry, verdict)
        except RuleUsedUp:
            return self.decide(call, phase=phase, released=released)
        except Exception as error:  # noqa: BLE001 - INVARIANT: if recording fails, the verdict is deny
            return Decided(entry, _unrecorded(risk, error))

    def answer(self, entry: str, answer: str, *, actor: str, channel: str, message: str = "") -> None:
        """Record what a person said to a question."""
        _known(answer, ANSWERS, "answer")
        data = {"answer": answer, "actor": actor, "channel": channel, "message": message}

        def answered(_tx: Transaction, found: Entry) -> dict[str, Any]:
            # INVARIANT: only a question is answered, and the first answer stands.
            if found.verdict != "ask" or found.answer is not None or found.completed_at is not None:
                raise InputError(f"{entry} waits for no answer.", remedy="See `checkrein audit show`.")
            return data

        self._follow_up(entry, "answered", answered, durable=True)

    def start(self, entry: str) -> None:
        """Record that an allowed call began to run."""
        self._follow_up(entry, "started", lambda _tx, _found: {})

    def finish(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        """Record an outcome and learn from it, in one transaction. Reported twice, it counts once."""
        _known(outcome, OUTCOMES, "outcome")
        self._follow_up(
            entry, "finished", lambda tx, found: self._finish(tx, found, outcome, output, evidence)
        )

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

        def last(tx: Transaction) -> None:
            self.mirror.remember(tx)
            self.ledger.file(tx)
            self.ledger.checkpoint(tx)

        # A full disk or a broken chain costs the signature, not the way out.
        with contextlib.suppress(CheckreinError):
            self.store.write(last, durable=True)
        self.store.close()

    def _record(
        self,
        tx: Transaction,
        entry: str,
        call: ToolCall,
        verdict: Verdict,
        force: InForce,
        book: earning.Book,
    ) -> None:
        if verdict.rule in force.counted and not use_rule(tx, verdict.rule or ""):
            raise RuleUsedUp
        if book.bad:
            earning.set_aside(tx, self.ledger, call.project, book.bad)
        data = events.decided(call, verdict, force.redactor, force.settings.retention.input_bytes)
        self.ledger.append(tx, "decided", data, entry=entry, terms=terms_of(data))
        if verdict.word == "deny":
            self.mirror.follow(tx)

    def _finish(
        self, tx: Transaction, found: Entry, outcome: str, output: Any, evidence: str
    ) -> dict[str, Any] | None:
        if found.completed_at is not None:
            return None
        force, now = self.policies.of(found.project), self.clock()
        trust: dict[str, float] = {}
        if outcome in ("success", "failure") and found.status != "denied":
            trust = earning.learn(tx, found.project, found.domains, outcome, force.settings, now)
        kept = events.cut(force.redactor.value(output), force.settings.retention.output_bytes)
        return events.finished(found, outcome, kept, evidence, trust, now)

    def _follow_up(self, entry: str, kind: str, data_for: FollowUp, *, durable: bool = False) -> None:
        def follow(tx: Transaction) -> None:
            found = fold(records.of_entries(tx, [entry]))
            if not found:
                raise NotFoundError(f"There is no call {entry!r}.")
            data = data_for(tx, found[0])
            if data is not None:
                self.ledger.append(tx, kind, data, entry=entry)
                self.mirror.follow(tx)

        self.store.write(follow, durable=durable)


def _durable(verdict: Verdict) -> bool:
    """A deny, and an allow of high risk, are on the disk before they are answered."""
    return verdict.word == "deny" or (verdict.word == "allow" and verdict.risk.category >= Category.high)


def _unrecorded(risk: Risk, error: Exception) -> Verdict:
    remedy = (
        error.remedy
        if isinstance(error, CheckreinError)
        else "Report this; such calls are refused until then."
    )
    text = error.message if isinstance(error, CheckreinError) else f"{type(error).__name__}: {error}"
    return refuse("record", f"The call could not be judged and recorded: {text}", remedy, risk)


def _known(word: str, words: Sequence[str], what: str) -> None:
    if word not in words:
        raise InputError(f"{word!r} is not an {what}.", remedy=f"Use {', '.join(words)}.")


def _unsettled(tx: Transaction, session: str) -> list[str]:
    """Calls of a session that have no daily line yet, oldest first."""
    return [each.id for each in entries(tx, Filter(session=session)) if each.settled_by is None][::-1]
