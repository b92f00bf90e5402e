"""What comes of one call of a script: refused, carried out, or asked about; written down at every step.

The runner calls these for each call and decides when. Nothing here touches the sandbox.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from checkrein.asking import OVERRULED
from checkrein.call import ToolCall
from checkrein.core.decision import Decided
from checkrein.core.decision import Evaluation as Evaluated
from checkrein.core.redemption import Approval, CurrentTool, Rejected, redeem
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.errands import UNKNOWN
from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.judging import to_its_end
from checkrein.doors.gateway.scripts.asking import Asking
from checkrein.doors.gateway.scripts.carrying import Carrier, LostError
from checkrein.doors.gateway.scripts.journal import Journal
from checkrein.doors.gateway.scripts.judging import Judge
from checkrein.doors.gateway.scripts.run import Answered, Question, Run
from checkrein.errors import CheckreinError
from checkrein.execute.sandbox import Wanted
from checkrein.ledger.query import get_entry
from checkrein.recording import NOBODY
from checkrein.settings import Evaluation
from checkrein.store import questions as stored
from checkrein.store.runs import CallRow

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub


class Pending(msgspec.Struct):
    """A call that may run, or must be asked about first (`evaluation`)."""

    wanted: Wanted
    offered: Offered
    call: ToolCall
    entry: str
    verdict: str = "allow"
    evaluation: Evaluated | None = None
    # As the journal has it where it was written with the verdict.
    row: CallRow | None = None


class Calls:
    """Scripts' calls."""

    def __init__(self, hub: Hub, judge: Judge, carrier: Carrier, asking: Asking, journal: Journal) -> None:
        self._hub, self._judge, self._carrier = hub, judge, carrier
        self._asking, self._journal = asking, journal

    async def judged(
        self, run: Run, wanted: Wanted, settings: Evaluation, *, asking: bool = True
    ) -> Pending | None:
        """What is to be done about a call that was just made; nothing where it is answered already."""
        offered = self._judge.offered(run, wanted)
        if isinstance(offered, str):
            call = self._judge.call(run, wanted, None, False)
            remedy = f"A person looks at it with `checkrein servers review {call.server}`."
            return await self._refused(run, wanted, call, "definition", offered, remedy, error=offered)
        call = self._judge.call(run, wanted, offered, self._trusted(offered))
        if run.script.denies(offered.server, offered.tool):
            why = "Whoever started the script ruled this tool out."
            return await self._refused(run, wanted, call, "session", why, "Start it without that.")
        if faults := offered.input.faults(wanted.arguments):
            text = " ".join(faults)
            return await self._refused(
                run, wanted, call, "arguments", text, "Correct the arguments.", error=text
            )

        while True:
            evaluation = self._judge.evaluate(run, call)
            asks, possible = evaluation.verdict.word == "ask", asking and self._asking.possible(run)
            if asks and possible:
                evaluation = self._judge.add_question(evaluation)
            if evaluation.asks:
                if why := self._asking.too_many(run, settings.most_asks, settings.asks_per_minute):
                    remedy = "A person raises `evaluation.most_asks` or `evaluation.asks_per_minute`."
                    return await self._refused(run, wanted, call, "flood", why, remedy, word="rate_limited")
                return Pending(wanted, offered, call, evaluation.entry, "approved", evaluation)
            if asks and not possible and self._judge.falls_back(run, evaluation.verdict):
                # The profile says yes where nobody can be asked.
                evaluation = self._judge.add_question(evaluation)
            row, pending = None, Pending(wanted, offered, call, evaluation.entry)
            if evaluation.plain:
                row = self._journal.row(run, wanted, "executing", evaluation.entry)
                decided = await self._judge.commit_with(evaluation, self._journal.begun(run, row))
                return await self._decided(run, msgspec.structs.replace(pending, row=row), decided)
            if (committed := await self._judge.commit(evaluation)) is not None:
                return await self._decided(run, pending, committed)

    async def _decided(self, run: Run, pending: Pending, decided: Decided) -> Pending | None:
        verdict, wanted = decided.verdict, pending.wanted
        if verdict.word == "allow":
            return pending
        if verdict.word == "deny":
            word = self._judge.word(run, verdict.stage, verdict.rule)
            return await self._denied(run, wanted, decided.entry, word)
        if decided.asked:
            await self._asking.record(decided.entry, "approved", message=NOBODY, channel="fallback")
            return await self._redeemed(run, wanted, pending.call, decided.entry, "fallback")
        # INVARIANT: a call that nobody was asked about does not run.
        return await self._denied(run, wanted, decided.entry, "elicitation_unsupported")

    async def asked(self, run: Run, pending: Pending) -> Question | Pending | None:
        """Put the question, now that the script is put away; it may not be needed any more."""
        evaluation = pending.evaluation or self._question(run, pending.call)
        while (decided := await self._judge.commit(evaluation)) is None:
            evaluation = self._question(run, pending.call)
        if not decided.asked:
            found = msgspec.structs.replace(pending, verdict="allow", evaluation=None, entry=decided.entry)
            return await self._decided(run, found, decided)
        if decided.entry != pending.entry:
            row = self._journal.row(run, pending.wanted, "asked", decided.entry, pending.offered.hash)
            await self._journal.note(run, row)
        return Question(pending.wanted, pending.call, decided.verdict, decided.entry)

    def _question(self, run: Run, call: ToolCall) -> Evaluated:
        return self._judge.add_question(self._judge.evaluate(run, call))

    async def asked_late(self, run: Run, wanted: Wanted) -> Question | None:
        """Put a question a server ended before it could put; nothing where none is needed by now."""
        offered = self._judge.offered(run, wanted)
        if isinstance(offered, str) or not self._asking.possible(run):
            return None
        call = self._judge.call(run, wanted, offered, self._trusted(offered))
        evaluation = self._question(run, call)
        if not evaluation.asks:
            return None
        # Another entry than the journal has: the question is written down there.
        found = await self.asked(run, Pending(wanted, offered, call, "", evaluation=evaluation))
        return found if isinstance(found, Question) else None

    async def answered(self, run: Run, question: Question, found: stored.Question) -> Pending | None:
        """What is to be done after a person's word; nothing where that is all."""
        wanted, entry = question.wanted, question.entry
        if found.state == "answered":
            value = {"content": [{"type": "text", "text": found.message}]}
            await self._known(run, wanted, entry, Answered(value=value, verdict="answered"))
            return None
        if found.state != "approved":
            word = "expired" if found.state == "expired" else "elicitation_declined"
            if question.unheard:
                word = "elicitation_unsupported"
            if found.message.startswith(OVERRULED):
                word = "denied"
            return await self._denied(run, wanted, entry, word, replace_surrogates(found.message))
        return await self._redeemed(run, wanted, question.call, entry, "approved")

    async def _redeemed(
        self, run: Run, wanted: Wanted, call: ToolCall, entry: str, verdict: str
    ) -> Pending | None:
        """The one run of an approved call; nothing where it may not run any more."""
        offered, outcomes = self._judge.offered(run, wanted), self._hub.calls.outcomes
        if isinstance(offered, str):
            tool = CurrentTool(unavailable=offered)
        else:
            tool = CurrentTool(offered.hash, faults=lambda given: " ".join(offered.input.faults(given)))

        def not_wanted(found: ToolCall | Rejected) -> None:
            if not isinstance(found, Rejected):
                outcomes.add(entry, "cancelled", evidence="client")

        # INVARIANT: a script's approved call runs at most once, whatever is resumed, sent again or killed.
        found = await to_its_end(
            partial(redeem, self._hub.pipeline, Approval(entry, call, tool=tool)), not_wanted
        )
        if not isinstance(found, Rejected) and not isinstance(offered, str):
            return Pending(wanted, offered, found, entry, verdict)
        if isinstance(found, Rejected):
            await self._rejected(run, wanted, call, entry, found)
        return None

    async def _rejected(self, run: Run, wanted: Wanted, call: ToolCall, entry: str, found: Rejected) -> None:
        if found.used:
            text = f"{call.server}__{call.tool}: {found.reason}"
            row = self._journal.row(run, wanted, "executing", entry)
            await self._journal.settle(run, row, Answered(error=text, verdict="approved"), "unknown")
        elif found.overruled:
            await self._denied(run, wanted, entry, self._judge.word(run, found.stage, found.rule))
        else:
            text = f"{call.server}__{call.tool}: {found.reason}"
            answered = Answered(error=text, verdict=f"refused: {found.stage}")
            await self._known(run, wanted, found.decided.entry, answered)

    async def execute(self, run: Run, pending: Pending) -> Answered:
        """Carry a call out; what it came to is in the journal when this returns."""
        wanted, entry = pending.wanted, pending.entry
        row = pending.row
        if row is None:
            row = self._journal.row(run, wanted, "executing", entry)
            await self._journal.note(run, row)
        state = ""
        try:
            found = await self._carrier.carry(run, pending.offered, pending.call, entry)
        except LostError as lost:
            found, state = await self._lost(run, pending, str(lost))
        found = msgspec.structs.replace(found, verdict=pending.verdict)
        await self._journal.settle(run, row, found, state)
        return found

    async def _lost(self, run: Run, pending: Pending, why: str) -> tuple[Answered, str]:
        """Once more where that does no harm and policy still allows it; else nobody knows."""
        unknown = Answered(error=f"{why} {UNKNOWN}"), "unknown"
        # INVARIANT: a call whose fate is unknown is sent again only where twice is the same as once.
        if not self._carrier.repeatable(pending.offered):
            return unknown
        while (decided := await self._judge.commit(self._judge.evaluate(run, pending.call))) is None:
            continue
        if decided.verdict.word != "allow":
            return unknown
        try:
            return await self._carrier.carry(run, pending.offered, pending.call, decided.entry), ""
        except LostError as lost:
            return Answered(error=f"{lost} {UNKNOWN}"), "unknown"

    async def unknown(self, run: Run, wanted: Wanted) -> Answered:
        """A call that was under way when the server ended."""
        row = run.journal[wanted.id]
        self._hub.calls.outcomes.add(row.entry, "unknown", evidence="server ended")
        offered = self._judge.offered(run, wanted)
        found = Answered(error=f"The gateway was stopped while this call was under way. {UNKNOWN}")
        state, before = "unknown", get_entry(self._hub.pipeline.store, row.entry)
        # INVARIANT: a call a person edited is never sent as it was first.
        if not isinstance(offered, str) and (before is None or before.edited_hash is None):
            call = self._judge.call(run, wanted, offered, self._trusted(offered))
            pending = Pending(wanted, offered, call, row.entry)
            found, state = await self._lost(
                run, pending, "The gateway was stopped while this call was under way."
            )
        await self._journal.settle(run, row, msgspec.structs.replace(found, verdict="allow"), state)
        return run.known[wanted.id]

    def question(self, run: Run, wanted: Wanted, entry: str, definition: str) -> Question:
        """A question that was put before, as it would be put now."""
        offered = self._judge.offered(run, wanted)
        known = None if isinstance(offered, str) else offered
        call = self._judge.call(run, wanted, known, known is not None and self._trusted(known))
        call = msgspec.structs.replace(call, definition=definition)
        return Question(wanted, call, self._judge.evaluate(run, call).verdict, entry)

    # -- answers that need no server --------------------------------------------------------------------

    async def _refused(
        self,
        run: Run,
        wanted: Wanted,
        call: ToolCall,
        stage: str,
        why: str,
        remedy: str,
        *,
        word: str = "denied",
        error: str = "",
    ) -> Pending | None:
        decided = await self._judge.refuse(call, stage, why, remedy)
        if error:
            text = f"{call.server}__{call.tool}: {error}"
            await self._known(run, wanted, decided.entry, Answered(error=text, verdict=f"refused: {stage}"))
            return None
        return await self._denied(run, wanted, decided.entry, word)

    async def _denied(
        self, run: Run, wanted: Wanted, entry: str, word: str, said: str = ""
    ) -> Pending | None:
        run.set(refusals=run.row.refusals + 1)
        await self._known(run, wanted, entry, Answered(denied=word, said=said, verdict=f"denied: {word}"))
        return None

    async def _known(self, run: Run, wanted: Wanted, entry: str, answered: Answered) -> None:
        await self._journal.settle(run, self._journal.row(run, wanted, "decided", entry), answered)

    def _trusted(self, offered: Offered) -> bool:
        try:
            return self._hub.fleet.spec(offered.server).trusted
        except CheckreinError:
            return False
