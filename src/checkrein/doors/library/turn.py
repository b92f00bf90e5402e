"""One call on its way through a gate: judged, asked about, carried out, reported. Steps, no I/O of its own.

`driving` carries the steps out; an authority (`embedded`, `remote`) does what they say.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from checkrein.approval import wording
from checkrein.asking import Remember
from checkrein.authority.settled import Settled
from checkrein.authority.taken import Taken
from checkrein.authority.wish import Wish
from checkrein.call import ToolCall, Verdict, digest
from checkrein.doors.library.answers import said
from checkrein.doors.library.arguments import described, plain
from checkrein.doors.library.denial import Denied, Refusal, Suspended
from checkrein.doors.library.driving import Place, Steps
from checkrein.doors.library.handing import handed
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.suspending import Scene, Stopped, fitting
from checkrein.errors import CheckreinError, InputError
from checkrein.judged import Decided
from checkrein.policy import UNKNOWN_RISK, refuse

Asks = Literal["wait", "raise", "return"]
Denials = Literal["raise", "return"]
# A question ends by itself long before this; the person's own time limit is the setting.
_FOR_EVER = 366 * 86_400.0
_CHANGED = "The arguments changed after they were judged, so nothing ran."
_LEFT = "the program stopped waiting"
_BIT_BY_BIT = "A tool that yields its result bit by bit cannot be gated."
_KEEPING = 'Annotate the parameter with its type, hide it, or use asks="wait".'
_log = logging.getLogger("checkrein")


class Authority(Protocol):
    """Whoever decides: a store of the program's own, or the user's server."""

    near: bool
    user: str

    def first(self, call: ToolCall, wish: Wish, phase: str) -> Decided | Callable[[], Decided]: ...

    def wait(
        self, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
    ) -> Settled | None: ...

    def withdraw(self, entry: str, call: ToolCall, why: str) -> None: ...

    def take(self, entry: str, call: ToolCall, phase: str, again: bool) -> Taken: ...

    def pause(self, entry: str, call: ToolCall, step: int, payload: Any, told: str) -> None: ...

    def go_on(self, entry: str, call: ToolCall, step: int, phase: str, again: bool, told: str) -> Taken: ...

    def finish(self, entry: str, outcome: str, output: Any, evidence: str) -> None: ...

    def flush(self) -> None: ...

    def questions(self) -> list[dict[str, Any]]: ...

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        call: ToolCall | None = None,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str: ...

    def close(self) -> None: ...


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool's calls are handled, as its program chose."""

    phase: str = "building"
    asks: Asks = "wait"
    denials: Denials = "raise"
    idempotent: bool = False
    # Asked about every question that waits here; what it says is the answer, nothing leaves it to others.
    answer_with: Callable[[dict[str, Any]], Any] | None = None
    # Told of every stop of a tool; what it gives, the tool goes on with at once.
    auto_resume: Callable[[Pending], Any] | None = None
    failed: Callable[[Any], bool] | None = None
    says: Any = None
    hears: Any = None


class Turn:
    """One call. `prepare` gives what carries it out, with other arguments or (None) as it was called."""

    def __init__(
        self,
        authority: Authority,
        manner: Manner,
        call: ToolCall,
        prepare: Callable[[dict[str, Any] | None], Callable[[], Any]],
        *,
        opaque: list[str] | None = None,
        now: Callable[[], dict[str, Any]] | None = None,
        lost: Callable[[], str] | None = None,
    ) -> None:
        self.authority, self.manner, self.call, self.prepare = authority, manner, call, prepare
        self.opaque, self.now, self.lost = opaque or [], now, lost
        # Whether others could run, and change the arguments, before the call does.
        self.waited = False
        self._before = digest(now()) if self.opaque and now is not None else ""

    @property
    def _near(self) -> Place:
        return "here" if self.authority.near else "away"

    def fresh(self, wish: Wish | Any) -> Steps:
        """A new call, from its verdict to its result."""
        try:
            decided = yield from self.judged(wish)
            if decided.verdict.word == "allow":
                if self._changed():
                    yield from self._report(decided.entry, "cancelled", _CHANGED, "arguments")
                    raise InputError(_CHANGED)
                return (yield from self.carried(decided.entry, None))
            return (yield from self._asked(decided))
        except Denied as denied:
            return self._denied(denied)
        except Suspended as suspended:
            return self._suspended(suspended)

    def again(self, pending: Pending, data: Any) -> Steps:
        """A call that waited goes on."""
        try:
            if pending.kind == "suspended":
                return (yield from self._going_on(pending, data))
            settled = yield "away", lambda: self.authority.wait(pending.entry, self.call, 0.0)
            if settled is None and self.manner.asks != "wait":
                raise Suspended(pending)
            if settled is None:
                settled = yield from self._waited(pending.entry)
            return (yield from self._settled(pending.entry, settled, pending.verdict, rebuilt=True))
        except Denied as denied:
            return self._denied(denied)
        except Suspended as suspended:
            return self._suspended(suspended)

    def judged(self, wish: Any) -> Steps:
        """The verdict, recorded; a refusal is raised."""
        if inspect.isawaitable(wish):
            coming = wish
            wish = yield "tool", lambda: coming
            self.waited = True
        found = yield self._near, lambda: self.authority.first(self.call, wish, self.manner.phase)
        if callable(found):
            self.waited = True
            found = yield from handed(found, self._unwanted)
        decided: Decided = found
        if decided.verdict.word == "deny":
            raise self._refused(decided)
        return decided

    def _changed(self) -> bool:
        """INVARIANT: what runs is what was judged, also where its arguments can change meanwhile."""
        if not self.waited or self.now is None:
            return False
        return digest(self.now()) != (self._before or self.call.argument_hash)

    def _unwanted(self, decided: Decided) -> None:
        """INVARIANT: a call nobody waits for any more stays neither open nor without an outcome."""
        if decided.verdict.word == "ask":
            self._withdraw(decided.entry, _LEFT)
        elif decided.verdict.word == "allow":
            self._interrupted(decided.entry)

    def _interrupted(self, entry: str) -> None:
        try:
            self.authority.finish(entry, "cancelled", _LEFT, "interrupted")
        except CheckreinError as error:
            _log.warning("The outcome of call %s could not be recorded: %s", entry, error)

    def _unkept(self) -> str:
        """Why another process could not go on with exactly this call; nothing where it could."""
        if self.opaque:
            return f"`{self.opaque[0]}` is nothing JSON can hold, so this call cannot wait."
        found = self.lost() if self.lost is not None else ""
        return f"This call cannot wait: another process would not get it as it is ({found})." if found else ""

    # -- asking -----------------------------------------------------------------------------------------

    def _asked(self, decided: Decided) -> Steps:
        if self.manner.asks != "wait":
            if why := self._unkept():
                yield "away", lambda: self._withdraw(decided.entry, "the call cannot be kept")
                raise InputError(why, remedy=_KEEPING)
            raise Suspended(self.pending(decided))
        settled = yield from self._waited(decided.entry)
        return (yield from self._settled(decided.entry, settled, decided.verdict))

    def pending(self, decided: Decided) -> Pending:
        """The question as data that another process can go on with."""
        text = wording.question(self.call, decided.verdict, decided.entry)
        return Pending(
            kind="approval",
            entry=decided.entry,
            call=self.call,
            text=text,
            phase=self.manner.phase,
            verdict=decided.verdict,
        )

    def _waited(self, entry: str) -> Steps:
        stop = threading.Event()
        try:
            if self.manner.answer_with is not None:
                yield "away", lambda: self._answered_here(entry)
            return (yield "away", lambda: self.authority.wait(entry, self.call, _FOR_EVER, stop))
        except BaseException:
            # INVARIANT: a question nobody waits for any more is withdrawn, so that no late yes runs anything.
            stop.set()
            yield "away", lambda: self._withdraw(entry, _LEFT)
            raise

    def _answered_here(self, entry: str) -> None:
        """Whoever the program has to answer its questions."""
        ask = self.manner.answer_with
        question = next((each for each in self.authority.questions() if each["id"] == entry), None)
        if ask is None or question is None:
            return
        # The record's input is masked; whoever edits starts from what the call really says.
        heard = ask({**question, "arguments": self.call.arguments})
        if heard is None:
            return
        given = said(heard)
        self.authority.answer(
            entry,
            given.answer,
            call=self.call,
            message=given.message,
            edited=given.edited,
            remember=given.remember,
        )

    def _withdraw(self, entry: str, why: str) -> None:
        try:
            self.authority.withdraw(entry, self.call, why)
        except CheckreinError as error:
            _log.warning("A question could not be withdrawn: %s", error)

    def _settled(
        self, entry: str, settled: Settled, verdict: Verdict | None, *, rebuilt: bool = False
    ) -> Steps:
        if settled.state == "answered":
            # A person answers for the tool, which does not run.
            return settled.message
        if settled.state != "approved":
            raise self._said_no(entry, settled, verdict)
        call, again = self.call, self.manner.idempotent
        self.waited = True
        if self._changed():
            yield from self._report(entry, "cancelled", _CHANGED, "arguments")
            raise InputError(_CHANGED)
        taken: Taken = yield from handed(
            lambda: self.authority.take(entry, call, self.manner.phase, again), partial(self._untaken, entry)
        )
        if taken.refused is not None:
            raise self._refused(taken.refused)
        # Python takes 1 for True; a person who wrote one of them did not.
        changed = digest(taken.arguments) != call.argument_hash
        return (yield from self.carried(entry, taken.arguments if rebuilt or changed else None))

    def _untaken(self, entry: str, taken: Taken) -> None:
        """A yes that was used up for nobody."""
        if taken.refused is None:
            self._interrupted(entry)

    def _said_no(self, entry: str, settled: Settled, was: Verdict | None) -> Denied:
        verdict = _no(settled, was)
        text = wording.answered(self.call, verdict, entry, settled.state, settled.actor, settled.message)
        reason = settled.message or verdict.reasons[0].text
        return Denied(text, verdict=verdict, entry=entry, reason=reason, state=settled.state)

    # -- carrying out -----------------------------------------------------------------------------------

    def carried(self, entry: str, arguments: dict[str, Any] | None, told: tuple[Any, ...] = ()) -> Steps:
        manner = self.manner
        try:
            run = self.prepare(arguments)
        except InputError as error:
            # Nothing ran: arguments a person wrote do not fit the tool.
            yield from self._report(entry, "cancelled", str(error), "arguments")
            raise
        while True:
            scene = Scene(told, manner.says, manner.hears)
            try:
                result = yield "tool", lambda: _played(scene, run)  # noqa: B023
                if scene.stopped is not None:
                    raise InputError("The tool went on although it was suspended.")
                if inspect.isgenerator(result) or inspect.isasyncgen(result):
                    raise InputError(_BIT_BY_BIT, remedy="Return the whole result.")
            except Stopped as stopped:
                told = yield from self._stopped(entry, arguments, stopped, told)
                continue
            except BaseException as error:
                yield from self._report(entry, *_fate(error))
                raise
            failed = manner.failed is not None and self._has_failed(result)
            yield from self._report(
                entry, "failure" if failed else "success", result, "tool error" if failed else ""
            )
            return result

    def _has_failed(self, result: Any) -> bool:
        try:
            return bool(self.manner.failed is not None and self.manner.failed(result))
        except Exception:  # noqa: BLE001 - INVARIANT: what nobody can read earns no trust
            return True

    def _report(self, entry: str, outcome: str, output: Any, evidence: str) -> Steps:
        """What became of the call; where it cannot be recorded its fate stays unknown."""
        shown = output if type(output) is str else _shown(output)
        try:
            yield self._near, lambda: self.authority.finish(entry, outcome, shown, evidence)
        except CheckreinError as error:
            _log.warning("The outcome of call %s could not be recorded: %s", entry, error)

    def _stopped(
        self, entry: str, arguments: dict[str, Any] | None, stopped: Stopped, told: tuple[Any, ...]
    ) -> Steps:
        """The tool waits to be told something: by the program at once, or by whoever resumes it."""
        ran = self.call if arguments is None else msgspec.structs.replace(self.call, arguments=arguments)
        yield (
            "away",
            lambda: self.authority.pause(entry, ran, stopped.step, stopped.payload, digest(list(told))),
        )
        pending = Pending(
            kind="suspended",
            entry=entry,
            call=ran,
            text=f"{wording.title(self.call)} waits to be told something. (record {entry})",
            phase=self.manner.phase,
            step=stopped.step,
            payload=stopped.payload,
            told=told,
        )
        resume = self.manner.auto_resume
        data = (yield "tool", lambda: resume(pending)) if resume is not None else None
        if data is None:
            if why := self._unkept():
                yield from self._report(entry, "cancelled", why, "arguments")
                raise InputError(why, remedy=_KEEPING)
            raise Suspended(pending)
        yield from self._claimed(pending)
        return (*told, self._heard(data, stopped.schema))

    def _going_on(self, pending: Pending, data: Any) -> Steps:
        heard = self._heard(data, self.manner.hears)
        yield from self._claimed(pending)
        return (yield from self.carried(pending.entry, pending.call.arguments, (*pending.told, heard)))

    def _claimed(self, pending: Pending) -> Steps:
        again, phase, told = self.manner.idempotent, self.manner.phase, digest(list(pending.told))
        taken: Taken = yield from handed(
            lambda: self.authority.go_on(pending.entry, pending.call, pending.step, phase, again, told),
            partial(self._untaken, pending.entry),
        )
        if taken.refused is not None:
            raise self._refused(taken.refused)

    def _heard(self, data: Any, schema: Any) -> Any:
        """What the tool is told, plain; data that does not fit is refused before anything goes on."""
        opaque: list[str] = []
        heard = plain(data, opaque)
        if opaque:
            raise InputError("What a tool is told must be JSON.")
        fitting(heard, schema, "What the tool is told")
        return heard

    # -- what the program hears -------------------------------------------------------------------------

    def _refused(self, decided: Decided) -> Denied:
        text = wording.refusal(self.call, decided.verdict, decided.entry)
        return Denied(text, verdict=decided.verdict, entry=decided.entry)

    def _denied(self, denied: Denied) -> Refusal:
        if self.manner.denials == "raise":
            raise denied
        return Refusal.of(denied)

    def _suspended(self, suspended: Suspended) -> Suspended:
        if self.manner.asks != "return":
            raise suspended
        return suspended


def _played(scene: Scene, run: Callable[[], Any]) -> Any:
    with scene.playing():
        result = run()
    return _played_later(scene, result) if inspect.isawaitable(result) else result


async def _played_later(scene: Scene, result: Any) -> Any:
    with scene.playing():
        return await result


def _fate(error: BaseException) -> tuple[str, Any, str]:
    """What an exception says of a call: it failed, took too long, or was stopped from outside."""
    if isinstance(error, TimeoutError):
        return "timeout", described(error), "exception"
    if isinstance(error, Exception):
        return "failure", described(error), "exception"
    return "cancelled", described(error), "interrupted"


def _shown(output: Any) -> Any:
    return plain(output, [])


def _no(settled: Settled, was: Verdict | None) -> Verdict:
    """A person's no as a verdict, with what was known of the call when it was asked about."""
    who = settled.actor or "A person"
    said_so = {"denied": f"{who} said no.", "expired": "Nobody answered in time."}
    why = said_so.get(settled.state, "The question was withdrawn.")
    risk = was.risk if was is not None else UNKNOWN_RISK
    return refuse("approval", why, "Ask for something else.", risk)
