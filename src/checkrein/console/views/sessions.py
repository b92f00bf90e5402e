"""Sessions: who works where, since when, in which phase, and how much."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein import overview
from checkrein.console.visits import Visit
from checkrein.ledger.terms import term
from checkrein.policy import phases
from checkrein.store.agents import Session, newest_sessions
from checkrein.store.phases import phase_for

PAGE = 40


def show(visit: Visit) -> Response:
    """Sessions, newest first."""
    project = visit.query.text("project")
    count = min(PAGE * max(1, visit.query.number("page") or 1), 10_000)
    found = newest_sessions(visit.desk.store, project, count + 1)
    return visit.page(
        "sessions.html",
        sessions=[
            _session(visit, each) for each in found[count - PAGE : count] if each.id != overview.PROBES
        ],
        project=project,
        page=count // PAGE,
        more=len(found) > count,
        phase_names=list(visit.desk.pipeline.policies.of(project).settings.phases),
    )


def _session(visit: Visit, each: Session) -> dict[str, Any]:
    store = visit.desk.store
    own = phase_for(store, each.project, each.id)
    settings = visit.desk.pipeline.policies.of(each.project).settings
    calls = store.query("SELECT count(*) FROM lookup WHERE term = ?", (term("session", each.id),))[0][0]
    return {
        "id": each.id,
        "agent": each.agent,
        "project": each.project,
        "started_at": each.started_at,
        "ended_at": each.ended_at,
        "attended": each.attended,
        "calls": calls,
        "phase": phases.phase_named(own, settings.phases),
        "is_set": own is not None,
    }
