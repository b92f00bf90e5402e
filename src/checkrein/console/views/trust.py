"""Trust: what was earned where, what moved it, what it lets run; brought in, taken along, reset."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import msgspec
from starlette.responses import Response

from checkrein import earning, overview
from checkrein.console import choices, shown
from checkrein.console.charts import chart
from checkrein.console.visits import Visit
from checkrein.errors import InputError
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.query import Filter, entries
from checkrein.policy.trustfile import render
from checkrein.settings.reading import LARGEST_FILE
from checkrein.store import Reader, records

MOVES = 60
_LOOKED_AT = 400
LEVELS = ("low", "medium", "high")


def show(visit: Visit) -> Response:
    """One project's trust by domain, and one domain's history."""
    store = visit.desk.store
    projects = choices.projects(store)
    project = visit.query.text("project") or _default(visit, projects)
    settings = visit.desk.pipeline.policies.of(project).settings
    found = overview.trust(store, settings, project, visit.desk.now())
    domain = visit.query.text("domain") or _newest(found["domains"])
    moves = history(store, project, domain) if domain else []
    return visit.page(
        "trust.html",
        project=project,
        projects=projects,
        phase=overview.phase(store, settings, project),
        found=found,
        domain=domain,
        moves=moves[::-1],
        chart=_drawn(moves, settings.autonomy.trust_gate_threshold),
        levels=LEVELS,
    )


def _default(visit: Visit, projects: list[str]) -> str:
    """The project somebody works in, else the first."""
    rows = visit.desk.store.query("SELECT project FROM session ORDER BY started_at DESC LIMIT 1")
    return str(rows[0][0]) if rows and rows[0][0] else next(iter(projects), "")


def _newest(domains: dict[str, Any]) -> str:
    """The domain that moved last."""
    used = sorted(domains, key=lambda name: (-(domains[name]["last_operated_at"] or 0), name))
    return used[0] if used else ""


def history(reader: Reader, project: str, domain: str) -> list[dict[str, Any]]:
    """What moved a domain's score lately, oldest first."""
    calls = list(islice(entries(reader, Filter(project=project, domain=domain)), _LOOKED_AT))
    about = {each.id: each for each in calls}
    rows = [row for row in records.of_entries(reader, list(about)) if row[2] == "finished"]
    moves = []
    for row in rows[-MOVES:]:
        data = body_of_row(row)["data"]
        score = data["trust"].get(domain)
        if score is None:
            continue
        each = about[row[3]]
        moves.append(
            {
                "at": row[1],
                "score": score,
                "outcome": data["outcome"],
                "evidence": data["evidence"],
                "entry": each.id,
                "tool": each.tool_name,
                "about": shown.one_line(each.tool_input, project, 80),
            }
        )
    for earlier, later in pairwise(moves):
        later["change"] = later["score"] - earlier["score"]
    return moves


def _drawn(moves: list[dict[str, Any]], gate: float) -> Any:
    steps = [
        (
            each["score"],
            each["outcome"],
            f"{shown.clock(each['at'])}: {each['score']:.3f} after {each['outcome']} of {each['tool']}",
            each["entry"],
        )
        for each in moves
    ]
    return chart(steps, (gate,)) if steps else None


def export(visit: Visit) -> Response:
    """The project's trust as a v2 trust-scores.json."""
    project = visit.query.text("project")
    settings = visit.desk.pipeline.policies.of(project).settings
    book = earning.book(visit.desk.store, project, settings)
    content = render(book.states, settings.trust.initial_score, visit.desk.now())
    return Response(
        msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n",
        media_type="application/json",
        headers={"content-disposition": 'attachment; filename="trust-scores.json"'},
    )


def import_(visit: Visit) -> Response:
    """Replace the project's trust with a file's."""
    project, content = _project(visit), visit.form.text("content").encode()
    if not content or len(content) > LARGEST_FILE:
        raise InputError("Put the content of a trust-scores.json into the field.")
    report = visit.desk.ask("trust.import", project=project, content=content, file="console")
    for domain, why in report["quarantined"].items():
        visit.session.tell("bad", f"Left out {domain}: {why}.")
    return visit.back("/trust", f"Imported {len(report['imported'])} domain(s).", project=project)


def reset(visit: Visit) -> Response:
    """Forget what was earned, in one domain or in all."""
    project, domain = _project(visit), visit.form.text("domain") or None
    if visit.form.text("sure") != "yes":
        return visit.back("/trust", "Tick the box to say that you mean it.", "bad", project=project)
    gone = visit.desk.ask("trust.reset", project=project, domain=domain)
    return visit.back("/trust", f"Reset {gone} domain(s).", project=project)


def _project(visit: Visit) -> str:
    project = visit.form.text("project")
    if not project:
        raise InputError("Name the project.")
    return project
