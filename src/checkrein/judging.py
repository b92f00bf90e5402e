"""What holds for a call at this moment: its risk, what policy and trust say to it, a yes given to it before.

The pipeline asks for every call. Nothing is recorded here, and nobody may hear a verdict before it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from checkrein import earning
from checkrein.asking import Asking, consented
from checkrein.call import ToolCall, Verdict
from checkrein.core.decision import Judged
from checkrein.memory import Memory
from checkrein.policies import InForce, Policies
from checkrein.policy import UNKNOWN_RISK, decide
from checkrein.repeats import Given, Repeats
from checkrein.sessions import Sessions
from checkrein.store import Store
from checkrein.store.phases import phase_for

PHASES_KEPT = 4096


class Judging:
    """The policy of every project, as calls meet it. Remembers what need not be worked out again."""

    def __init__(self, store: Store, policies: Policies, asking: Asking, clock: Callable[[], float]) -> None:
        self._store, self._policies, self._asking, self._clock = store, policies, asking, clock
        self.sessions, self.books = Sessions(store), earning.Books(store)
        self._memory, self._repeats = Memory(), Repeats()
        self._phases: tuple[int | None, dict[tuple[str, str], str | None]] = (None, {})

    def judge(
        self,
        call: ToolCall,
        *,
        phase: str | None = "building",
        released: bool = False,
        approved: bool = False,
        policy: InForce | None = None,
    ) -> Judged:
        """Return the verdict of this moment. `policy`: the effective policy, if already resolved."""
        holds = policy or self._policies.of(call.project, call.door, phase, call.profile)
        return self._judged(call, holds, released, approved)

    def _judged(self, call: ToolCall, force: InForce, released: bool, approved: bool) -> Judged:
        if not call.history and (before := self.sessions.history(call.session)):
            call = msgspec.structs.replace(call, history=before)
        usual = not released and not approved
        now, trust = self._clock(), self._store.writes_to("trust")
        if usual and (again := self._repeats.find(call, force, trust, now)):
            return Judged(again.verdict, force, again.book)
        known = self._memory.known(call, force.tables, force.own_folders(call.project))
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

        found = self._repeats.get(call, risk, force, book, now) if usual else None
        if found is None:
            found = verdict(released, approved)
            if usual:
                self._repeats.keep(call, known, Given(force, book, now, found), trust)
        consent = None
        if found.word == "ask" and (consent := self._asking.grant(call, risk)):
            found = consented(verdict(released, True), consent)
        elif found.stage == "floor" and risk is not UNKNOWN_RISK and (consent := self._asking.release(call)):
            found = consented(verdict(True, approved), consent)
        return Judged(found, force, book, consent if found.word == "allow" else None)

    def worth_asking(self, call: ToolCall, judged: Judged) -> Judged:
        """A question, or the refusal in its place: people are not asked the same again, nor flooded."""
        needless = self._asking.needless(call, judged.verdict, judged.force.settings.approval)
        return msgspec.structs.replace(judged, verdict=needless) if needless else judged

    def phase_of(self, project: str, session: str) -> str | None:
        """The phase a person set for the session, the project or everything; none is the strictest."""
        writes = self._store.writes_to("phase")
        if writes is None or writes != self._phases[0] or len(self._phases[1]) > PHASES_KEPT:
            self._phases = writes, {}
        known = self._phases[1]
        if (project, session) not in known:
            known[project, session] = phase_for(self._store, project, session)
        return known[project, session]
