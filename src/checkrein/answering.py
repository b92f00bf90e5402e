"""What a person says to a question: recorded once, and heard by everybody who waits for it."""

from __future__ import annotations

from typing import Any

from checkrein.approval.broker import Broker
from checkrein.approval.question_calls import AskedCall
from checkrein.asking import IN_THE_AGENT, OVERRULED, Answerer, Asking, Remember
from checkrein.call import Risk, ToolCall, reason_lines
from checkrein.core.entry_secrets import EntrySecrets
from checkrein.core.lifecycle import Event
from checkrein.errors import ConflictError, InputError
from checkrein.finishing import known
from checkrein.judging import Judging
from checkrein.ledger.entries import Entry
from checkrein.policies import Policies
from checkrein.recording import Recording
from checkrein.store import Store, Transaction
from checkrein.store.questions import ASKED, get_question

ANSWERS = ("approved", "denied", "answered", "expired", "cancelled")
_AGAIN = "Have the agent make the call again."
_UNREADABLE = "The call this question is about cannot be read any more, so nobody can say yes to it."


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
        secrets: EntrySecrets,
    ) -> None:
        self._store, self._policies, self._broker = store, policies, broker
        self._asking, self._judging, self._recording = asking, judging, recording
        self._secrets = secrets

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
        edited = edited if answer == "approved" else None
        asked = self._broker.asked_call(entry)
        # What was answered in the agent's own dialog has run: the record says so, whatever holds by now.
        has_run = channel == IN_THE_AGENT and not self._broker.is_awaited(entry)
        # INVARIANT: nobody says yes to a call that cannot be read and judged again.
        if answer in ("approved", "answered") and asked is None and not has_run and self._is_open(entry):
            raise InputError(_UNREADABLE, remedy="Deny it, and have the agent make the call again.")
        if asked is not None and edited is not None:
            asked = self._edited(entry, asked, edited)
        if answer == "approved" and asked is not None and not has_run:
            overruled = self._overruled(asked, edited)
            answer, message = ("denied", overruled) if overruled else (answer, message)
        redactor = self._policies.of(self._project_of(entry, asked)).redactor
        secrets = self._secrets.of(entry, redactor, edited=edited)

        def masked(text: str) -> str:
            return redactor.text(secrets.quoted(text))

        # INVARIANT: what people say is masked before it is kept, as what agents say is.
        data = {"answer": answer, "actor": actor, "channel": channel, "message": masked(message)}
        if edited is not None and asked is not None and answer == "approved":
            data["edited"] = secrets.value(redactor.value(edited))
            data["edited_hash"] = asked.call.argument_hash
        # INVARIANT: what is remembered is what was approved, not what was asked for.
        remembered = self._remembered(asked) if remember and answer == "approved" else None
        by, also = Answerer(actor, channel, masked), list[str]()

        def answered(tx: Transaction, _found: Entry) -> dict[str, Any] | None:
            # INVARIANT: only a question is answered, and the first answer stands.
            same = self._asking.settle(tx, entry, data, edited if answer == "approved" else None)
            if same is None:
                return None
            also[:] = same
            if remembered is not None and remember is not None:
                call, risk = remembered
                data["grant"] = self._asking.remember(tx, entry, call, risk, remember, by).id
            return data

        if not self._recording.follow_up(entry, Event.answer, answered, durable=True):
            raise self._not_answered(entry)
        for each in (entry, *also):
            self._broker.settled(each)
        return answer

    def _not_answered(self, entry: str) -> InputError:
        """Why an answer was not recorded; a question whose time is over ends with that."""
        if not self._is_open(entry):
            return _settled(entry)
        self.answer(entry, "expired", actor="", channel="timeout")
        return ConflictError("The question has expired; the call counts as refused.", remedy=_AGAIN)

    def _is_open(self, entry: str) -> bool:
        question = get_question(self._store, entry)
        return question is not None and question.state == ASKED

    def _edited(self, entry: str, asked: AskedCall, edited: dict[str, Any]) -> AskedCall:
        """The call with the arguments a person wrote instead."""
        # Whoever runs an agent's call is the agent: only a hook that waits can give it other arguments.
        if asked.call.door == "hooks" and not self._broker.is_awaited(entry):
            raise InputError("Nobody waits for this call any more, so it cannot be edited.")
        return asked.edited(edited)

    def _overruled(self, asked: AskedCall, edited: dict[str, Any] | None) -> str:
        """Why a yes does not count: the policy of this moment refuses the call."""
        call, phase = asked.call, asked.phase
        if call.door == "hooks":
            phase = self._judging.phase_of(call.project, call.session)
        verdict = self._judging.judge(call, phase=phase, approved=True).verdict
        if verdict.word != "deny":
            return ""
        why = " ".join(reason_lines(verdict.reasons[:1]))
        if edited is not None:
            raise InputError(f"The edited call would be refused: {why}")
        return f"{OVERRULED} {why}"

    def _remembered(self, asked: AskedCall | None) -> tuple[ToolCall, Risk]:
        if asked is None:
            raise InputError(f"{_UNREADABLE} It cannot be remembered.")
        return asked.call, self._judging.judge(asked.call).verdict.risk

    def _project_of(self, entry: str, asked: AskedCall | None) -> str:
        question = None if asked else get_question(self._store, entry)
        return asked.call.project if asked else question.project if question else ""


def _settled(entry: str) -> ConflictError:
    return ConflictError(f"{entry} waits for no answer.", remedy="See `checkrein audit show`.")
