"""LangChain and LangGraph: middleware that judges what the model wants to call, and interrupts to ask.

Verdicts are kept in the graph's state, because a node that is interrupted runs from its beginning again.
A resumed graph's word runs nothing: what a person said is read from the gate.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, NotRequired

import msgspec
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, Interrupt, interrupt

from checkrein.call import ToolCall, Verdict
from checkrein.doors.library.adapters import HandedOn
from checkrein.doors.library.answers import Answer, said
from checkrein.doors.library.arguments import plain, plain_arguments
from checkrein.doors.library.denial import Denied, Suspended
from checkrein.doors.library.driving import Steps, drive, drive_async
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.doors.library.turn import Turn
from checkrein.errors import CheckreinError, InputError

KEY = "checkrein"
Result = ToolMessage | Command[Any]
# Verdicts of this process that nothing has run by yet; the oldest are judged again.
_MOST_READY = 1_000


def _merged(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """What is known of the latest calls; a turn of the model replaces what was known before."""
    return new if new is not None else (old or {})


class GateState(AgentState[Any]):
    """The agent's state with the verdicts in it."""

    checkrein: NotRequired[Annotated[dict[str, Any], _merged, PrivateStateAttr]]


class Note(msgspec.Struct, frozen=True):
    """A verdict as the graph's state keeps it."""

    call: ToolCall
    word: str
    entry: str
    text: str = ""
    verdict: Verdict | None = None
    waits: Pending | None = None


class GateMiddleware(AgentMiddleware[Any, Any, Any]):
    """Put it last in `middleware`, so that nothing changes a call after it was judged.

    Options are those of `gate.tool`, for every tool. A refusal is an error message the model reads, unless
    `denials="raise"`. A call that is asked about waits where the gate says `asks="wait"`; otherwise the
    graph is interrupted, which takes a checkpointer.
    """

    state_schema = GateState

    def __init__(self, gate: Gate, **options: Any) -> None:
        super().__init__()
        self.gate, self.tools = gate, ()
        self._raises = options.pop("denials", "return") == "raise"
        asks = options.pop("asks", None) or gate.manner.asks
        self._waits = asks == "wait"
        self._failed = options.pop("failed", None) or _failed
        self._options = options | {"denials": "raise", "asks": "wait" if self._waits else "raise"}
        self._ready: dict[str, None] = {}

    # -- judging ----------------------------------------------------------------------------------------

    def after_model(self, state: Any, runtime: Any = None) -> dict[str, Any] | None:  # noqa: ARG002
        """Judge every call the model wants; also a node's function, for graphs without an agent."""
        found: dict[str, Any] | None = drive(self._judging(state, may_wait=False))
        return found

    async def aafter_model(self, state: Any, runtime: Any = None) -> dict[str, Any] | None:  # noqa: ARG002
        found: dict[str, Any] | None = await drive_async(self._judging(state, may_wait=True))
        return found

    def _judging(self, state: Any, *, may_wait: bool) -> Steps:
        wanted = [] if self._waits else _wanted(state["messages"])
        notes = {}
        for each in wanted:
            note = yield from self._judged(each, may_wait)
            notes[each["id"] or ""] = msgspec.to_builtins(note)
        return {KEY: notes} if notes else None

    def _judged(self, wanted: Any, may_wait: bool) -> Steps:
        spec, turn = self._turn(wanted, _never)
        try:
            decided = yield from turn.judged(
                self.gate.wish(spec, turn.call, turn.call.arguments, may_wait=may_wait)
            )
        except Denied as denied:
            return Note(turn.call, "deny", denied.entry, denied.text, denied.verdict)
        if decided.verdict.word == "ask":
            return Note(turn.call, "ask", decided.entry, waits=turn.pending(decided))
        self._ready[decided.entry] = None
        while len(self._ready) > _MOST_READY:
            del self._ready[next(iter(self._ready))]
        return Note(turn.call, "allow", decided.entry)

    # -- running ----------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        carrier = _Carrier(request, handler)
        return carrier.message(drive(self._steps(carrier, may_wait=False)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        carrier = _Carrier(request, handler)
        return carrier.message(await drive_async(self._steps(carrier, may_wait=True)))

    def _steps(self, carrier: _Carrier, *, may_wait: bool) -> Steps:
        spec, turn = self._turn(carrier.request.tool_call, carrier)
        try:
            note = None if self._waits else self._note(carrier.request)
            if note is None:
                wish = self.gate.wish(spec, turn.call, turn.call.arguments, may_wait=may_wait)
                return (yield from turn.fresh(wish))
            # INVARIANT: a verdict and a person's answer hold for the very call they were given for.
            if not _is_about(note, turn.call):
                return carrier.refused(self._changed(note))
            if note.word == "deny":
                return self._refused(carrier, note)
            if note.waits is not None:
                return (yield from self._paused(turn, note.waits))
            return (yield from self._allowed(turn, note, spec, may_wait))
        except Denied as denied:
            if self._raises:
                raise
            return carrier.refused(denied.text)
        except Suspended as suspended:
            return self._stuck(carrier, suspended.pending)
        except HandedOn as handed:
            raise handed.value from None

    def _allowed(self, turn: Turn, note: Note, spec: Spec, may_wait: bool) -> Steps:
        # INVARIANT: one verdict, one run; a node that runs again has its call judged again.
        if note.entry in self._ready:
            del self._ready[note.entry]
            return (yield from turn.carried(note.entry, None))
        wish = self.gate.wish(spec, turn.call, turn.call.arguments, may_wait=may_wait)
        return (yield from turn.fresh(wish))

    def _paused(self, turn: Turn, waits: Pending) -> Steps:
        """Interrupt until the question is settled, wherever it was answered."""
        waits = self.gate.waits(waits)
        turn = Turn(turn.authority, turn.manner, waits.call, turn.prepare)
        trouble = ""
        while True:
            told = interrupt(_shown(waits, trouble))
            trouble = self._answered(waits, told)
            try:
                return (yield from turn.again(waits, None))
            except Suspended as suspended:
                if suspended.pending.kind == "suspended":
                    raise

    def _answered(self, waits: Pending, told: Any) -> str:
        """Give the gate what a resumed graph was told; what was wrong with it, if anything."""
        given = told.get(KEY) if isinstance(told, dict) else None
        # INVARIANT: an answer names the question it is for; a bare yes is nobody's.
        if not isinstance(given, dict) or given.get("entry") != waits.entry:
            return "This answers another question, or none."
        if given.get("answer") is None:
            return ""
        try:
            self.gate.answer(waits, said(given["answer"]))
        except CheckreinError as error:
            # Settled already (a node that runs again says it again), or not ours to answer.
            return str(error)
        return ""

    def _stuck(self, carrier: _Carrier, waits: Pending) -> str:
        """A call that would have to wait where nothing can be remembered: refused, and nothing stays open."""
        if waits.kind == "suspended":
            self.gate.finish(waits.entry, "cancelled", evidence="suspended")
            why = "A tool that suspends itself cannot go on in this graph."
            raise InputError(why, remedy='Use LangGraph\'s `interrupt`, or asks="wait".')
        self.gate.authority.withdraw(waits.entry, waits.call, "the call cannot wait here")
        return carrier.refused(
            f"This call must be asked about first, so nothing ran. Make it again. (record {waits.entry})"
        )

    def _refused(self, carrier: _Carrier, note: Note) -> str:
        if self._raises and note.verdict is not None:
            raise Denied(note.text, verdict=note.verdict, entry=note.entry)
        return carrier.refused(note.text)

    def _changed(self, note: Note) -> str:
        if note.waits is not None:
            # Where it was answered already, nothing runs by the answer here.
            with contextlib.suppress(CheckreinError):
                self.gate.authority.withdraw(note.entry, note.waits.call, "the call was changed")
        elif note.word == "allow" and self._ready.pop(note.entry, _MOST_READY) is None:
            self.gate.finish(note.entry, "cancelled", evidence="changed")
        return f"This call was changed after it was judged, so nothing ran. Make it again. ({note.entry})"

    def _note(self, request: ToolCallRequest) -> Note:
        state = request.state if isinstance(request.state, dict) else vars(request.state)
        raw = (state.get(KEY) or {}).get(request.tool_call["id"] or "")
        if raw is None:
            # INVARIANT: what nobody has judged does not run.
            why = "A tool call came that the gate has not judged."
            raise InputError(why, remedy="Use it as middleware, or put `after_model` before the tools.")
        return msgspec.convert(raw, Note)

    def _turn(self, wanted: Any, run: Callable[[dict[str, Any]], Any]) -> tuple[Spec, Turn]:
        failed = (lambda _: self._failed(run.result)) if isinstance(run, _Carrier) else None
        spec = self.gate.spec(wanted["name"], failed=failed, **self._options)
        arguments = plain_arguments(wanted["args"], [])
        call = self.gate.tool_call(spec, arguments, wanted["id"] or "")

        def prepare(changed: dict[str, Any] | None) -> Callable[[], Any]:
            return partial(run, arguments if changed is None else changed)

        return spec, Turn(self.gate.authority, spec.manner, call, prepare)


class _Carrier:
    """Carries one call out by the framework's handler, and keeps the message that came of it."""

    def __init__(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> None:
        self.request, self._handler = request, handler
        self.result: Any = None

    def __call__(self, arguments: dict[str, Any]) -> Any:
        request = self.request.override(tool_call={**self.request.tool_call, "args": arguments})
        try:
            came = self._handler(request)
        except GraphBubbleUp as elsewhere:
            raise HandedOn(elsewhere) from None
        return self._later(came) if inspect.isawaitable(came) else self._kept(came)

    async def _later(self, coming: Awaitable[Any]) -> Any:
        try:
            return self._kept(await coming)
        except GraphBubbleUp as elsewhere:
            raise HandedOn(elsewhere) from None

    def _kept(self, result: Any) -> Any:
        self.result = result
        return result.content if isinstance(result, ToolMessage) else plain(result, [])

    def refused(self, text: str) -> str:
        self.result = self._text(text, "error")
        return text

    def message(self, came: Any) -> Result:
        """What the graph hears: the tool's own message, or what a person answered for it."""
        found: Result = self.result if self.result is not None else self._text(str(came), "success")
        return found

    def _text(self, text: str, status: Any) -> ToolMessage:
        call = self.request.tool_call
        return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"], status=status)


def _wanted(messages: Sequence[Any]) -> list[Any]:
    """The model's latest calls, without those that have an answer already (a structured last word has)."""
    answered = set[str | None]()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [each for each in message.tool_calls if each["id"] not in answered]
        answered.add(getattr(message, "tool_call_id", None))
    return []


def _is_about(note: Note, call: ToolCall) -> bool:
    """Whether a note, and the question in it, is about the call: the state is kept by others."""
    noted = [note.call] if note.waits is None else [note.call, note.waits.call]
    return all((each.name, each.argument_hash) == (call.name, call.argument_hash) for each in noted)


def _failed(result: Any) -> bool:
    return isinstance(result, ToolMessage) and result.status == "error"


def _never(_arguments: dict[str, Any]) -> Any:
    raise InputError("This call is only judged here.")


def _shown(waits: Pending, trouble: str) -> dict[str, Any]:
    shown = {"entry": waits.entry, "tool": waits.call.name, "arguments": waits.call.arguments}
    shown |= {"text": waits.text, "pending": msgspec.to_builtins(waits)}
    return {KEY: shown | ({"trouble": trouble} if trouble else {})}


# -- interrupts ---------------------------------------------------------------------------------------------


def waiting(found: Sequence[Interrupt]) -> dict[str, Pending]:
    """The gate's questions among a graph's interrupts, by interrupt id."""
    return {
        each.id: pending(each.value[KEY]["pending"])
        for each in found
        if isinstance(each.value, dict) and KEY in each.value
    }


def reply(question: Interrupt, answer: Any = None) -> dict[str, Any]:
    """What to resume an interrupt with: an answer ("yes", "no: why", an `Answer`), or a look at the gate.

    Without an answer the gate is asked what a person said elsewhere.
    """
    entry = question.value[KEY]["entry"]
    given = None if answer is None else msgspec.to_builtins(said(answer))
    return {KEY: {"entry": entry, "answer": given}}


__all__ = ["Answer", "GateMiddleware", "GateState", "reply", "waiting"]
