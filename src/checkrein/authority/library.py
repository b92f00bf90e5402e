"""What a Python program's gate asks of the authority: decide, wait, take a yes, report, pause and go on.

A gate with a store of its own calls the functions here; one that talks to the server asks the verbs, which
are the same functions behind the socket. Nothing here answers a question.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import msgspec

from checkrein import peers
from checkrein.asking import consented
from checkrein.authority import Asked, Params, verb
from checkrein.call import Category, Reason, ToolCall, Verdict, digest
from checkrein.errors import InputError, NotFoundError
from checkrein.finishing import Outcome
from checkrein.judged import Considered, Decided
from checkrein.ledger.entries import Entry, body_of_row, fold
from checkrein.pipeline import Pipeline
from checkrein.store import Transaction, records
from checkrein.store.agents import Session, get_session, put_session
from checkrein.store.questions import ASKED, Question, get_question, waiting

DOOR = "library"
TICK = 1.0
# A verb waits no longer than this, so that whoever asks hears from us before giving up.
LONGEST_WAIT = 20.0
# Stages that speak where people wrote nothing about a call.
_SILENT = frozenset({"unmatched", "trust_gate", "autonomy"})
_MOST_LET = 256


class Wish(msgspec.Struct, frozen=True):
    """What the program itself says of a call: why a person is asked, or why none need be."""

    hold: str = ""
    let: str = ""
    # Hold only what nobody else spoke for: a person's own rule counts for more.
    mild: bool = False
    # The worst a call may be that runs because the program says so.
    upto: Category = Category.medium


class Settled(msgspec.Struct, frozen=True):
    """What became of a question."""

    state: str
    actor: str = ""
    message: str = ""


class Taken(msgspec.Struct, frozen=True):
    """A yes that is used up now, with the arguments it was given for; or why there is none to use."""

    arguments: dict[str, Any] | None = None
    refused: Decided | None = None


# -- deciding -----------------------------------------------------------------------------------------------


def consider(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Considered | Decided:
    """The verdict with the program's own wish in it, on its way to the record."""
    found = pipeline.consider(call, phase=phase)
    if isinstance(found, Decided):
        return found
    judged, verdict = found.judged, found.judged.verdict
    again = partial(decide, pipeline, call, wish, phase)
    held = wish.hold and (not wish.mild or verdict.stage in _SILENT)
    if verdict.word == "allow" and held and judged.consent is None:
        consent = pipeline.asking.grant(call, verdict.risk)
        if consent is None:
            return pipeline.consider(call, phase=phase, hold=wish.hold, asking=True)
        # A person said yes to this for longer than once.
        judged = msgspec.structs.replace(judged, verdict=consented(verdict, consent), consent=consent)
        return msgspec.structs.replace(found, judged=judged, again=again)
    if verdict.word != "ask":
        return found
    if not wish.hold and wish.let and _may_let(verdict, wish):
        judged = msgspec.structs.replace(judged, verdict=_let(verdict, wish.let))
        return msgspec.structs.replace(found, judged=judged, again=again)
    return pipeline.consider(call, phase=phase, asking=True)


def decide(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Decided:
    """The verdict, recorded; an ask is a question that waits."""
    considered = consider(pipeline, call, wish, phase)
    return considered if isinstance(considered, Decided) else pipeline.settle(considered)


def _may_let(verdict: Verdict, wish: Wish) -> bool:
    # INVARIANT: a program's wish never outranks the floor, a phase, or what a person wrote.
    return verdict.stage in _SILENT and verdict.risk.category <= min(wish.upto, Category.high)


_given: dict[tuple[int, str], tuple[Verdict, Verdict]] = {}


def _let(verdict: Verdict, why: str) -> Verdict:
    """The same call allowed because the program says so; the very same verdict gets the very same answer."""
    known = _given.get((id(verdict), why))
    if known is not None and known[0] is verdict:
        return known[1]
    let = msgspec.structs.replace(
        verdict,
        decision="auto_approved",
        stage="program",
        reasons=(Reason(why), *verdict.risk.reasons),
        remedy="",
    )
    if len(_given) >= _MOST_LET:
        _given.clear()
    _given[id(verdict), why] = verdict, let
    return let


# -- asking -------------------------------------------------------------------------------------------------


def bound(pipeline: Pipeline, entry: str, call: ToolCall) -> Question:
    """The question about exactly this call."""
    found = get_question(pipeline.store, entry)
    # INVARIANT: an answer is given to nobody but the very call it was asked for.
    if found is None or found.binding != call.binding:
        raise InputError(f"{entry} is no question about this call.", remedy="Make the call again.")
    return found


def so_far(pipeline: Pipeline, entry: str, call: ToolCall) -> Settled | None:
    """What became of the question until now; nobody in time is a no."""
    found = bound(pipeline, entry, call)
    if found.state == ASKED and found.expires_at <= pipeline.clock():
        _settle(pipeline, entry, "expired", "timeout", "")
        found = bound(pipeline, entry, call)
    if found.state != ASKED:
        return Settled(found.state, found.actor, found.message)
    if not pipeline.broker.is_awaited(entry):
        # Whoever answers later is judged by the call itself, also after a restart.
        pipeline.broker.keep(entry, call)
    return None


def expire(pipeline: Pipeline) -> None:
    """Questions whose time is over and that nobody waits for are a no."""
    now = pipeline.clock()
    for each in waiting(pipeline.store):
        if each.expires_at <= now and not pipeline.broker.is_awaited(each.entry):
            _settle(pipeline, each.entry, "expired", "timeout", "")


def wait(
    pipeline: Pipeline, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
) -> Settled | None:
    """What became of the question; nothing while it is open and the time is over, or we are told to stop."""
    deadline = time.monotonic() + seconds
    with pipeline.broker.awaiting(entry, call):
        while (settled := so_far(pipeline, entry, call)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or (stop is not None and stop.is_set()):
                break
            expires = bound(pipeline, entry, call).expires_at - pipeline.clock()
            pipeline.broker.wait(entry, max(0.0, min(TICK, left, expires)))
    if settled is None:
        pipeline.broker.keep(entry, call)
    return settled


def withdraw(pipeline: Pipeline, entry: str, call: ToolCall, why: str) -> None:
    """The caller does not want an answer any more."""
    bound(pipeline, entry, call)
    _settle(pipeline, entry, "cancelled", "program", why)


def _settle(pipeline: Pipeline, entry: str, answer: str, channel: str, message: str) -> None:
    try:
        pipeline.answer(entry, answer, actor="", channel=channel, message=message)
    except InputError:
        # Somebody was quicker.
        return


# -- running ------------------------------------------------------------------------------------------------


def take(
    pipeline: Pipeline,
    entry: str,
    call: ToolCall,
    phase: str,
    *,
    edited: dict[str, Any] | None = None,
    again: bool = False,
) -> Taken:
    """Use up a yes. `edited`: arguments kept since they were approved; `again`: twice does no harm."""
    asked = get_question(pipeline.store, entry)
    if asked is None or asked.binding != call.binding or asked.state != "approved":
        why = "This is not the call a person said yes to."
        return _no(pipeline, call, "state", why, "Make the call again.")
    arguments = _approved(pipeline, entry, call, edited)
    if arguments is None:
        why = "It was approved with other arguments, and those are not there any more."
        return _no(pipeline, call, "state", why, "Make the call again; it is asked about again.")
    refused = _refused_now(pipeline, entry, msgspec.structs.replace(call, arguments=arguments), phase)
    if refused is not None:
        return refused
    # INVARIANT: an approved call runs at most once, unless running it twice does no harm.
    if not pipeline.begin(entry) and not (again and _may_repeat(pipeline, entry)):
        return _no(pipeline, call, "state", _used(pipeline, entry), "Make the call again.")
    return Taken(arguments)


def _approved(
    pipeline: Pipeline, entry: str, call: ToolCall, kept: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The arguments a person said yes to; nothing where they wrote others that are lost."""
    story = _story(pipeline, entry)
    answered: dict[str, Any] = next((each["data"] for each in story if each["kind"] == "answered"), {})
    if "edited" not in answered:
        return call.arguments
    heard = pipeline.broker.edited(entry)
    if heard is not None:
        return heard
    noted = [each["data"]["argument_hash"] for each in story if each["kind"] == "edited"]
    # INVARIANT: arguments that come from outside run only where they are the ones that were approved.
    return kept if kept is not None and digest(kept) in noted else None


def _refused_now(pipeline: Pipeline, entry: str, call: ToolCall, phase: str) -> Taken | None:
    """INVARIANT: what the policy of this moment refuses does not run, whatever was said before."""
    verdict = pipeline.judge(call, phase=phase, approved=True).verdict
    if verdict.word != "deny":
        return None
    pipeline.finish(entry, "cancelled", evidence="policy")
    return _no(pipeline, call, verdict.stage, verdict.reasons[0].text, verdict.remedy, verdict)


def _no(
    pipeline: Pipeline, call: ToolCall, stage: str, why: str, remedy: str, was: Verdict | None = None
) -> Taken:
    risk = was.risk if was else pipeline.judge(call).verdict.risk
    return Taken(refused=pipeline.refuse(call, stage, why, remedy, risk))


def _story(pipeline: Pipeline, entry: str) -> list[dict[str, Any]]:
    return [body_of_row(row) for row in records.of_entries(pipeline.store, [entry])]


def entry_of(pipeline: Pipeline, entry: str) -> Entry | None:
    return next(iter(fold(records.of_entries(pipeline.store, [entry]))), None)


def _may_repeat(pipeline: Pipeline, entry: str) -> bool:
    """Whether a call that began has no outcome anybody knows; beginning again is recorded."""
    found = entry_of(pipeline, entry)
    if found is None or found.answer != "approved" or found.result != "unknown":
        return False
    pipeline.start(entry)
    return True


def _used(pipeline: Pipeline, entry: str) -> str:
    found = entry_of(pipeline, entry)
    fate = found.result if found is not None else "unknown"
    if fate == "unknown":
        return "This yes was used before, and what became of the call is unknown; look before trying again."
    return f"This yes was used before; what became of the call: {fate}."


def may_report(pipeline: Pipeline, entry: str, outcome: str) -> None:
    """INVARIANT: nothing is learned from a call that nobody let run."""
    found = entry_of(pipeline, entry) if outcome in ("success", "failure") else None
    if found is None or found.completed_at is not None:
        return
    if found.verdict != "allow" and found.answer != "approved" and found.started_at is None:
        raise InputError(f"{entry} may not have run: nobody said yes to it.", remedy="Resume it instead.")


# -- pausing inside a tool ----------------------------------------------------------------------------------


def pause(pipeline: Pipeline, entry: str, call: ToolCall, step: int, payload: Any, *, told: str = "") -> None:
    """Record that a running tool stopped to be told something; `call` is what runs, `told` a digest."""
    redactor = pipeline.policies.of(call.project).redactor
    data = {
        "project": call.project,
        "session": call.session,
        "step": step,
        "argument_hash": call.argument_hash,
        "payload": redactor.value(payload),
        "told_hash": told,
    }
    pipeline.store.write(lambda tx: pipeline.ledger.append(tx, "suspended", data, entry=entry), durable=True)


def go_on(
    pipeline: Pipeline,
    entry: str,
    call: ToolCall,
    step: int,
    phase: str,
    *,
    again: bool = False,
    told: str = "",
) -> Taken:
    """Let a tool that stopped go on with what it was told, once."""
    taken: list[bool] = []

    def claim(tx: Transaction) -> None:
        rows = records.of_entries(tx, [entry])
        story, found = [body_of_row(row) for row in rows], fold(rows)
        same = bool(found) and _is_of(found[0], call)
        steps = {each["data"]["step"]: each["data"] for each in story if each["kind"] == "suspended"}
        stop = steps.get(step, {})
        # INVARIANT: a tool goes on with what it was told, as it was called; others keep both, and may lie.
        fits = (
            same and stop.get("argument_hash") == call.argument_hash and stop.get("told_hash", told) == told
        )
        gone = any(each["kind"] == "resumed" and each["data"]["step"] == step for each in story)
        over = bool(found) and found[0].completed_at is not None
        repeat = again and (not over or found[0].result == "unknown") and max(steps, default=0) == step
        # INVARIANT: a tool that stopped goes on once for each time it stopped, unless repeating is harmless.
        taken[:] = [fits and ((not gone and not over) or repeat)]
        if taken[0]:
            data = {"project": call.project, "session": call.session, "step": step}
            pipeline.ledger.append(tx, "resumed", data, entry=entry)

    refused = _refused_now(pipeline, entry, call, phase) if _waits(pipeline, entry, call) else None
    if refused is not None:
        return refused
    pipeline.store.write(claim, durable=True)
    if taken[0]:
        return Taken(call.arguments)
    return _no(pipeline, call, "state", "This call does not wait to go on.", "Make the call again.")


def _waits(pipeline: Pipeline, entry: str, call: ToolCall) -> bool:
    found = entry_of(pipeline, entry)
    return found is not None and found.completed_at is None and _is_of(found, call)


def _is_of(entry: Entry, call: ToolCall) -> bool:
    return (entry.tool_name, entry.session_id, entry.project, entry.door) == (
        call.name,
        call.session,
        call.project,
        call.door,
    )


# -- the same behind the socket -----------------------------------------------------------------------------


class _About(msgspec.Struct, forbid_unknown_fields=True):
    call: ToolCall
    entry: str = ""
    wish: Wish = Wish()
    phase: str = "building"
    seconds: float = 0.0
    step: int = 0
    payload: Any = None
    again: bool = False
    told: str = ""
    why: str = ""


def _read(asked: Asked, params: Params) -> _About:
    """What is asked; who asks is what the kernel says, not what the program says."""
    about = msgspec.convert(params, _About)
    # INVARIANT: a program names neither its user, nor its door, nor what its session did before.
    call = msgspec.structs.replace(about.call, door=DOOR, user=asked.actor, history=())
    about.call = call
    return about


def _introduce(asked: Asked, call: ToolCall) -> None:
    """INVARIANT: the program whose calls are judged, and whatever it runs, is an agent and no person."""
    process = peers.process(asked.peer.pid)
    if process is None:
        raise InputError("The program that asks has gone already.")
    agent, session = f"{DOOR}:{call.agent}", call.session
    known = get_session(asked.pipeline.store, agent, session)
    mine = (process.pid, process.started)
    # INVARIANT: a program that names a session which another speaks for makes no living agent a person.
    if known is not None and _speaker(known) != mine and peers.is_alive(*_speaker(known)):
        session = f"{session} (process {process.pid})"
        known = get_session(asked.pipeline.store, agent, session)
    if known is not None and _speaker(known) == mine:
        return
    met = Session(
        agent=agent,
        id=session,
        project=call.project,
        started_at=asked.pipeline.clock(),
        process=process.pid,
        process_started=process.started,
    )
    asked.pipeline.store.write(lambda tx: put_session(tx, met))


def _speaker(session: Session) -> tuple[int, str]:
    return session.process, session.process_started


@verb("library.meet", person=False)
def _meet(asked: Asked, params: Params) -> None:
    """{"call"}: whose calls will come; from now on whoever asks this is no person."""
    _introduce(asked, _read(asked, params).call)


@verb("library.decide", person=False)
def _decide(asked: Asked, params: Params) -> Decided:
    """{"call", "wish", "phase"}"""
    about = _read(asked, params)
    _introduce(asked, about.call)
    return decide(asked.pipeline, about.call, about.wish, about.phase)


@verb("library.wait", person=False)
def _wait(asked: Asked, params: Params) -> Settled | None:
    """{"call", "entry", "seconds"}"""
    about = _read(asked, params)
    _introduce(asked, about.call)
    return wait(asked.pipeline, about.entry, about.call, min(about.seconds, LONGEST_WAIT))


@verb("library.withdraw", person=False)
def _withdraw(asked: Asked, params: Params) -> None:
    """{"call", "entry", "why"}"""
    about = _read(asked, params)
    withdraw(asked.pipeline, about.entry, about.call, about.why)


@verb("library.take", person=False)
def _take(asked: Asked, params: Params) -> Taken:
    """{"call", "entry", "phase", "again"}"""
    about = _read(asked, params)
    _introduce(asked, about.call)
    return take(asked.pipeline, about.entry, about.call, about.phase, again=about.again)


@verb("library.pause", person=False)
def _pause(asked: Asked, params: Params) -> None:
    """{"call", "entry", "step", "payload", "told"}"""
    about = _read(asked, params)
    if not _waits(asked.pipeline, about.entry, about.call):
        raise InputError("This call is not under way.", remedy="Make the call again.")
    pause(asked.pipeline, about.entry, about.call, about.step, about.payload, told=about.told)


@verb("library.go_on", person=False)
def _go_on(asked: Asked, params: Params) -> Taken:
    """{"call", "entry", "step", "phase", "again", "told"}"""
    about = _read(asked, params)
    _introduce(asked, about.call)
    step, again, told = about.step, about.again, about.told
    return go_on(asked.pipeline, about.entry, about.call, step, about.phase, again=again, told=told)


@verb("library.finish", person=False)
def _finish(asked: Asked, params: Params) -> None:
    """{"entry", "outcome", "output", "evidence"}"""
    told = msgspec.convert(params, Outcome)
    told = msgspec.structs.replace(told, about=None)
    found = entry_of(asked.pipeline, told.entry)
    # INVARIANT: a program reports on calls of its own door only.
    if found is None or found.door != DOOR:
        raise NotFoundError(f"There is no call {told.entry!r} of a program.")
    may_report(asked.pipeline, told.entry, told.outcome)
    # INVARIANT: what an agent runs earns no trust by reporting.
    why = asked.agents.run_by_agent(asked.peer, itself=True)
    if why and told.outcome in ("success", "failure"):
        told = Outcome(told.entry, "unknown", told.output, f"{told.outcome} reported, but {why}")
    asked.pipeline.finish(told.entry, told.outcome, output=told.output, evidence=told.evidence)
