"""What a person wants to see at a glance, as plain data: server, phase, sessions, trust, questions, calls.

Read by `checkrein status`, and by whatever else shows it. Never writes, never starts a server.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from checkrein import __version__, earning, knocking
from checkrein.authority.question import described
from checkrein.call import Category
from checkrein.errors import CheckreinError
from checkrein.ledger.entries import Entry, body_of_row, moment
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.terms import term, terms_of
from checkrein.policies import Policies
from checkrein.policy import phases
from checkrein.policy.autonomy import autonomy, decision_for
from checkrein.policy.trust import TrustModel, TrustState
from checkrein.settings import Phase, Settings
from checkrein.store import Reader, lookup, records
from checkrein.store.agents import Session, newest_sessions
from checkrein.store.phases import phase_for
from checkrein.store.questions import waiting

RECENT = 10
# The session doctor's own calls belong to; nobody works in it.
PROBES = "checkrein-doctor"
SESSIONS = 5
# What a plain call is taken for where nothing is known of it.
_COMPLEXITY = 0.5
_LEVELS = (Category.low, Category.medium, Category.high)
_MOST_COUNTED = 1_000_000
# More successes than this are no next step.
_FARTHEST = 500


def overview(reader: Reader, project: str) -> dict[str, Any]:
    """The whole page for a project."""
    loaded = Policies(reader).loaded(project)
    settings, now = loaded.settings, time.time()
    return {
        "server": server(),
        "project": project,
        "fault": loaded.fault or None,
        "phase": phase(reader, settings, project),
        "sessions": [
            session(reader, settings, each)
            for each in newest_sessions(reader, project, SESSIONS + 1)
            if each.id != PROBES
        ],
        "trust": trust(reader, settings, project, now),
        "questions": questions(reader, now),
        "recent": [_verdict(each) for each in entries(reader, Filter(project=project), RECENT)],
    }


def server() -> dict[str, Any]:
    """What the server says of itself; nothing is started to find out."""
    try:
        connection = knocking.connect()
        if connection is not None:
            about: dict[str, Any] = knocking.ask(connection, "server.about", {})
            return about
    except CheckreinError as error:
        return {"running": False, "version": __version__, "trouble": str(error)}
    return {"running": False, "version": __version__}


def phase(reader: Reader, settings: Settings, project: str, session: str = "") -> dict[str, Any]:
    """The phase in force, whether a person set it, and what it lets through."""
    found = phase_for(reader, project, session)
    name = phases.phase_named(found, settings.phases)
    return {"name": name, "is_set": found is not None, "profile": profile(settings.phases[name])}


def profile(of: Phase) -> dict[str, list[str]]:
    return {name: list(getattr(of, name)) for name in ("allowed", "denied", "trust_gated")}


def session(reader: Reader, settings: Settings, each: Session) -> dict[str, Any]:
    """A session's state: who, since when, how many calls, in which phase with which profile."""
    in_force = phase(reader, settings, each.project, each.id)
    return {
        "session_id": each.id,
        "agent": each.agent,
        "started_at": moment(each.started_at),
        "ended_at": None if each.ended_at is None else moment(each.ended_at),
        "operation_count": operations(reader, each.id),
        "phase": in_force["name"],
        "profile": in_force["profile"],
    }


def operations(reader: Reader, session_id: str) -> int:
    """How many calls of a session were judged, also those not filed yet."""
    wanted = term("session", session_id)
    filed = lookup.find(reader, [wanted], "", "", _MOST_COUNTED)
    recent = records.after(reader, lookup.filed(reader), ("decided",))
    return len({row[3] for row in recent if wanted in terms_of(body_of_row(row)["data"])}.union(filed))


def trust(reader: Reader, settings: Settings, project: str, now: float) -> dict[str, Any]:
    """What was earned by domain, what it means today in the project's phase, and what comes next."""
    name = phases.phase_named(phase_for(reader, project, ""), settings.phases)
    book, model = earning.book(reader, project, settings), earning.model_for(settings)
    fresh = model.fresh(book.inherited)
    return {
        "domains": {
            domain: {
                **msgspec.structs.asdict(state),
                "score": model.score(state, now),
                **prospects(domain, state, model, settings, name, now),
            }
            for domain, state in book.states.items()
        },
        "unused": {"score": model.score(fresh, now), **prospects("", fresh, model, settings, name, now)},
        "quarantined": book.bad,
    }


def prospects(
    domain: str, state: TrustState, model: TrustModel, settings: Settings, phase_name: str, now: float
) -> dict[str, Any]:
    """The decision by risk level today, and after how many more successes the next level stops asking."""
    today = {
        level.name: _decision(domain, level, model.score(state, now), settings, phase_name)
        for level in _LEVELS
    }
    asks = next((level for level in _LEVELS if today[level.name] == "human_required"), None)
    if asks is None:
        return {"today": today, "next": None}
    count = 0
    while count < _FARTHEST:
        state, count = model.succeeded(state, now), count + 1
        if _decision(domain, asks, state.score, settings, phase_name) != "human_required":
            return {"today": today, "next": {"risk": asks.name, "successes": count}}
    return {"today": today, "next": None}


def _decision(domain: str, level: Category, score: float, settings: Settings, phase_name: str) -> str:
    """What a plain call of this risk gets from the phase and from trust; rules may say otherwise."""
    lists, domains = settings.phases[phase_name], (domain,) if domain else ()
    if domain and phases.blocked(phase_name, lists, domains):
        return "blocked"
    if phases.gated(lists, domains) and score <= settings.autonomy.trust_gate_threshold:
        return "human_required"
    return decision_for(autonomy(level, _COMPLEXITY, score, settings.risk), settings.autonomy)


def questions(reader: Reader, now: float) -> list[dict[str, Any]]:
    """What waits for a person, oldest first."""
    return [described(reader, each) for each in waiting(reader) if each.expires_at > now]


def _verdict(each: Entry) -> dict[str, Any]:
    return {
        "id": each.id,
        "timestamp": each.timestamp,
        "session_id": each.session_id,
        "tool": each.tool_name,
        "input": each.tool_input,
        "risk": each.risk_category,
        "verdict": each.verdict,
        "decision": each.decision,
        "answer": each.answer,
        "result": each.result,
    }
