"""What a person says to a question: recorded once, and heard by everybody who waits for it."""

from __future__ import annotations

from typing import Any

from checkrein.approval.broker import Broker
from checkrein.asking import IN_THE_AGENT, OVERRULED, Answerer, Asking, Remember
from checkrein.call import ToolCall, reason_lines
from checkrein.errors import ConflictError, InputError
from checkrein.finishing import known
from checkrein.judging import Judging
from checkrein.ledger.entries import Entry
from checkrein.policies import Policies
from checkrein.recording import Recording
from checkrein.store import Store, Transaction
from checkrein.store.questions import get_question

ANSWERS = ("approved", "denied", "answered", "expired", "cancelled")


class Answering:
    """Answers on their way to the record; the policy of that moment has the last word."""

    def __init__(
        self,
        store: Store,
        policies: Policies,
        broker: Broker,
        asking: Asking,
        judging: Judging,
        recording: Recording,
    ) -> None:
        self._store, self._policies, self._broker = store, policies, broker
        self._asking, self._judging, self._recording = asking, judging, recording

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
        call = self._broker.call(entry)
        # What was answered in the agent's own dialog has run: the record says so, whatever holds by now.
        if answer == "approved" and (channel != IN_THE_AGENT or self._broker.is_awaited(entry)):
            overruled = self._overruled(entry, call, edited)
            answer, message = ("denied", overruled) if overruled else (answer, message)
        redactor = self._policies.of(self._project_of(entry, call)).redactor
        # INVARIANT: what people say is masked before it is kept, as what agents say is.
        data = {"answer": answer, "actor": actor, "channel": channel, "message": redactor.text(message)}
        # INVARIANT: what is remembered is what was approved, not what was asked for.
        approved = self._broker.edit(entry, edited) if edited is not None else call
        if answer == "approved" and edited is not None and approved is not None:
            data["edited"], data["edited_hash"] = redactor.value(edited), approved.argument_hash
        risk = self._judging.judge(approved).verdict.risk if remember and approved else None
        if remember and risk is None:
            raise InputError("Nobody waits for this call any more, so it cannot be remembered.")
        by, also = Answerer(actor, channel, redactor.text), list[str]()

        def answered(tx: Transaction, found: Entry) -> dict[str, Any]:
            # INVARIANT: only a question is answered, and the first answer stands.
            if found.verdict != "ask" or found.answer is not None or found.completed_at is not None:
                raise ConflictError(f"{entry} waits for no answer.", remedy="See `checkrein audit show`.")
            also[:] = self._asking.settle(tx, entry, data)
            if answer == "approved" and remember and approved and risk:
                data["grant"] = self._asking.remember(tx, entry, approved, risk, remember, by).id
            return data

        with self._broker.settling():
            self._recording.follow_up(entry, "answered", answered, durable=True)
            self._broker.settled(entry, edited if answer == "approved" else None)
            for each in also:
                self._broker.settled(each)
        return answer

    def _overruled(self, entry: str, call: ToolCall | None, edited: dict[str, Any] | None) -> str:
        """Why a yes does not count: the policy of this moment refuses the call."""
        if edited is not None:
            call = self._broker.edit(entry, edited)
            if call is None:
                raise InputError("Nobody waits for this call any more, so it cannot be edited.")
        if call is None:
            return ""
        phase = self._judging.phase_of(call.project, call.session) if call.door == "hooks" else "building"
        verdict = self._judging.judge(call, phase=phase, approved=True).verdict
        if verdict.word != "deny":
            return ""
        why = " ".join(reason_lines(verdict.reasons[:1]))
        if edited is not None:
            raise InputError(f"The edited call would be refused: {why}")
        return f"{OVERRULED} {why}"

    def _project_of(self, entry: str, call: ToolCall | None) -> str:
        asked = None if call else get_question(self._store, entry)
        return call.project if call else asked.project if asked else ""
