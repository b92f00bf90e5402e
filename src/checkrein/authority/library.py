"""What a Python program's gate asks of the server: decide, wait, take a yes, report, pause and go on.

Verbs: what `wish`, `approvals`, `taken` and `paused` offer a gate with a store of its own, behind the socket.
Nothing here answers a question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein import peers
from checkrein.authority import Asked, Params, verb
from checkrein.authority.paused import go_on, is_under_way, pause
from checkrein.authority.taken import Taken, may_report, take
from checkrein.authority.wish import Wish, decide
from checkrein.call import ToolCall
from checkrein.core.approvals import Settled, wait, withdraw
from checkrein.core.decision import Decided
from checkrein.errors import InputError, NotFoundError
from checkrein.finishing import Outcome
from checkrein.ledger.query import get_entry
from checkrein.store.agents import Session, get_session, put_session

DOOR = "library"
# A verb waits no longer than this, so that whoever asks hears from us before giving up.
LONGEST_WAIT = 20.0


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
    if not is_under_way(asked.pipeline, about.entry, about.call):
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
    found = get_entry(asked.pipeline.store, told.entry)
    # INVARIANT: a program reports on calls of its own door only.
    if found is None or found.door != DOOR:
        raise NotFoundError(f"There is no call {told.entry!r} of a program.")
    may_report(asked.pipeline, told.entry, told.outcome)
    # INVARIANT: what an agent runs earns no trust by reporting.
    why = asked.agents.run_by_agent(asked.peer, itself=True)
    if why and told.outcome in ("success", "failure"):
        told = Outcome(told.entry, "unknown", told.output, f"{told.outcome} reported, but {why}")
    asked.pipeline.finish(told.entry, told.outcome, output=told.output, evidence=told.evidence)
