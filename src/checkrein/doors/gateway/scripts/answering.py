"""What comes of one call of a script: refused, carried out, or asked about; written down at every step.

The runner calls these for each call and decides when. Nothing here touches the sandbox.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from checkrein.asking import OVERRULED
from checkrein.call import ToolCall
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.errands import UNKNOWN
from checkrein.doors.gateway.scripts.asking import Asking
from checkrein.doors.gateway.scripts.carrying import Carrier, LostError
from checkrein.doors.gateway.scripts.journal import Journal
from checkrein.doors.gateway.scripts.judging import Judge, edited
from checkrein.doors.gateway.scripts.run import Answered, Question, Run
from checkrein.errors import CheckreinError
from checkrein.execute.sandbox import DamagedError, Wanted
from checkrein.judged import Considered, Decided
from checkrein.ledger.entries import Entry, fold
from checkrein.settings import Evaluation
from checkrein.store import questions as stored
from checkrein.store.records import of_entries
from checkrein.store.runs import CallRow

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub


class Pending(msgspec.Struct):
    """A call that may run, or must be asked about first (`considered`)."""

    wanted: Wanted
    offered: Offered
    call: ToolCall
    entry: str
    verdict: str = "allow"
    considered: Considered | None = None
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

        def possible() -> bool:
            return asking and self._asking.possible(run)

        considered = self._judge.consider(run, call, lambda: possible() or self._judge.fallback(run))
        if isinstance(considered, Considered) and considered.asking and possible():
            if why := self._asking.too_many(run, settings.most_asks, settings.asks_per_minute):
                remedy = "A person raises `evaluation.most_asks` or `evaluation.asks_per_minute`."
                return await self._refused(run, wanted, call, "flood", why, remedy, word="rate_limited")
            return Pending(wanted, offered, call, considered.entry, "approved", considered)
        if not self._judge.at_once(considered):
            decided = await self._judge.settle(considered)
            return await self._decided(run, Pending(wanted, offered, call, decided.entry), decided)
        row = self._journal.row(run, wanted, "executing", considered.entry)
        decided = await self._judge.settle(considered, self._journal.begun(run, row))
        return await self._decided(run, Pending(wanted, offered, call, row.entry, row=row), decided)

    async def _decided(self, run: Run, pending: Pending, decided: Decided) -> Pending | None:
        verdict = decided.verdict
        if verdict.word == "allow":
            return pending
        if verdict.word == "deny":
            return await self._denied(run, pending.wanted, decided.entry, self._judge.word(run, verdict))
        if decided.asked:
            # Nobody can be asked, and the profile says what happens then.
            yes = self._judge.falls_back(run, verdict)
            await self._asking.record(
                decided.entry,
                "approved" if yes else "cancelled",
                message="nobody could be asked",
                channel="fallback",
            )
            if yes:
                return msgspec.structs.replace(pending, verdict="fallback")
        # INVARIANT: a call that nobody was asked about does not run.
        return await self._denied(run, pending.wanted, decided.entry, "elicitation_unsupported")

    async def asked(self, run: Run, pending: Pending) -> Question | Pending | None:
        """Put the question, now that the script is put away; it may not be needed any more."""
        considered = pending.considered
        decided = await self._judge.settle(considered) if considered else None
        if decided is None or not decided.asked:
            found = msgspec.structs.replace(pending, verdict="allow", considered=None)
            if decided is None:
                return found
            return await self._decided(run, msgspec.structs.replace(found, entry=decided.entry), decided)
        if decided.entry != pending.entry:
            row = self._journal.row(run, pending.wanted, "asked", decided.entry, pending.offered.hash)
            await self._journal.note(run, row)
        return Question(pending.wanted, pending.call, decided.verdict, decided.entry)

    async def asked_late(self, run: Run, wanted: Wanted) -> Question | None:
        """Put a question a server ended before it could put; nothing where none is needed by now."""
        offered = self._judge.offered(run, wanted)
        if isinstance(offered, str) or not self._asking.possible(run):
            return None
        call = self._judge.call(run, wanted, offered, self._trusted(offered))
        considered = self._judge.consider(run, call, lambda: True)
        if not isinstance(considered, Considered) or not considered.asking:
            return None
        found = await self.asked(run, Pending(wanted, offered, call, considered.entry, "", considered))
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
            return await self._denied(run, wanted, entry, word)
        known = self._check_bound(run, question)
        offered = self._judge.offered(run, wanted)
        arguments = self._asking.edited(entry)
        call = question.call if arguments is None else edited(question.call, arguments)
        # INVARIANT: what a person wrote instead runs, or nothing does: a restart loses it.
        if call.argument_hash != (known.edited_hash or known.argument_hash):
            text = "What a person wrote instead of these arguments is gone."
            self._finish(entry, "arguments")
            return await self._refused(run, wanted, call, "arguments", text, "Ask again.", error=text)
        # INVARIANT: a yes is to the tool as it was accepted when it was asked about.
        if isinstance(offered, str) or offered.hash != call.definition:
            text = offered if isinstance(offered, str) else "The tool's definition changed meanwhile."
            return await self._refused(run, wanted, call, "definition", text, "Ask again.", error=text)
        if faults := offered.input.faults(call.arguments):
            text = " ".join(faults)
            return await self._refused(run, wanted, call, "arguments", text, "Approve others.", error=text)
        # INVARIANT: a deny that came after the yes outranks it.
        if verdict := self._judge.overruled(call):
            self._finish(entry, "policy")
            return await self._denied(run, wanted, entry, self._judge.word(run, verdict))
        return Pending(wanted, offered, call, entry, "approved")

    def _check_bound(self, run: Run, question: Question) -> Entry:
        """INVARIANT: a yes counts for the very call of the very run it was given to, as the ledger has it."""
        found, call = self._recorded(question.entry), question.call
        if (
            found is None
            or found.call_id != f"{run.id}:{question.wanted.id}"
            or (found.tool_name, found.argument_hash) != (call.name, call.argument_hash)
        ):
            raise DamagedError("An answer belongs to another call.", remedy="Run the script again.")
        return found

    def _recorded(self, entry: str) -> Entry | None:
        return next(iter(fold(of_entries(self._hub.pipeline.store, [entry]))), None)

    async def execute(self, run: Run, pending: Pending) -> Answered:
        """Carry a call out; what it came to is in the journal when this returns."""
        wanted, entry = pending.wanted, pending.entry
        row = pending.row
        if row is None:
            row = self._journal.row(run, wanted, "executing", entry)
            await self._journal.note(run, row)
        if pending.verdict in ("approved", "fallback"):
            # INVARIANT: an approved call runs at most once, whatever is resumed, sent again or killed.
            begun = await asyncio.to_thread(self._hub.pipeline.begin, entry)
            if not begun:
                text = f"This approval was used before. {UNKNOWN}"
                found = Answered(error=text, verdict=pending.verdict)
                await self._journal.settle(run, row, found, "unknown")
                return found
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
        decided = await self._judge.settle(self._judge.consider(run, pending.call, lambda: False))
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
        state, before = "unknown", self._recorded(row.entry)
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
        considered = self._judge.consider(run, call, lambda: False)
        verdict = considered.verdict if isinstance(considered, Decided) else considered.judged.verdict
        return Question(wanted, call, verdict, entry)

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

    async def _denied(self, run: Run, wanted: Wanted, entry: str, word: str) -> Pending | None:
        run.set(refusals=run.row.refusals + 1)
        await self._known(run, wanted, entry, Answered(denied=word, verdict=f"denied: {word}"))
        return None

    async def _known(self, run: Run, wanted: Wanted, entry: str, answered: Answered) -> None:
        await self._journal.settle(run, self._journal.row(run, wanted, "decided", entry), answered)

    def _trusted(self, offered: Offered) -> bool:
        try:
            return self._hub.fleet.spec(offered.server).trusted
        except CheckreinError:
            return False

    def _finish(self, entry: str, evidence: str) -> None:
        self._hub.calls.outcomes.add(entry, "cancelled", evidence=evidence)
