"""Runs: scripts that ran or wait, and each one's story: its text with its calls marked, and its end."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein.console import shown
from checkrein.console.shown import Block
from checkrein.console.spans import json_spans
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError

Facts = dict[str, Any]
PAGE, MOST = 50, 1_000
UNFINISHED = ("running", "waiting")
# What became of a line's calls, the worst first; the page has a colour and a word for each.
STATES = ("denied", "failed", "unknown", "asked", "executing", "decided", "requested", "done")
_MARK = {"denied": "✗", "failed": "!", "unknown": "!", "asked": "?", "executing": "…", "done": "✓"}
_SAID = {
    "allow": "allowed",
    "approved": "approved by a person",
    "fallback": "nobody could be asked; the profile says yes then",
    "answered": "answered by a person in its place",
}


def show(visit: Visit) -> Response:
    """Runs, newest first."""
    return visit.page("runs.html", **_listed(visit))


def rows(visit: Visit) -> Response:
    """The list alone, for a page that is open."""
    return visit.page("_runs.html", **_listed(visit))


def one(visit: Visit) -> Response:
    return visit.page("run.html", run=_run(visit))


def state(visit: Visit) -> Response:
    """How one run is, for a page that is open."""
    return visit.page("_run.html", run=_run(visit))


def cancel(visit: Visit) -> Response:
    """End it; what it has called already is not undone."""
    back = f"/runs/{visit.named['id']}"
    try:
        visit.desk.ask("run.cancel", id=visit.named["id"])
    except CheckreinError as error:
        return visit.back(back, str(error), "bad")
    return visit.back(back, "The run is ended.")


def _listed(visit: Visit) -> Facts:
    count = min(max(visit.query.number("count") or PAGE, PAGE), MOST)
    found = visit.desk.ask("run.list", limit=min(count + 1, MOST))
    return {"runs": [_row(each) for each in found[:count]], "more": len(found) > count, "count": count}


def _row(run: Facts) -> Facts:
    return {**run, "word": _word(run), "mark": f"{run['state']} {run['changed_at']} {len(run['waiting'])}"}


def _word(run: Facts) -> str:
    return "waits for you" if run["waiting"] else str(run["state"])


def _run(visit: Visit) -> Facts:
    run: Facts = visit.desk.ask("run.show", id=visit.named["id"])
    steps = [_step(each) for each in run["timeline"]]
    mark = " ".join([_row(run)["mark"], *(str(each["state"]) for each in steps)])
    return {
        **_row(run),
        "mark": mark,
        "unfinished": run["state"] in UNFINISHED,
        "lines": script_lines(str(run["source"]), run["timeline"]),
        "steps": steps,
        "end": _end(run["result"]),
    }


def script_lines(source: str, steps: list[Facts]) -> list[Facts]:
    """Each line with what became of its calls: nothing in it can be taken for a mark of ours."""
    states: dict[int, set[str]] = {}
    for each in steps:
        states.setdefault(int(each["line"]), set()).add(str(each["state"]))
    found = []
    for number, text in enumerate(source.splitlines(), start=1):
        worst = next((each for each in STATES if each in states.get(number, ())), "")
        found.append({"number": number, "text": text, "state": worst, "mark": _MARK.get(worst, "")})
    return found


def _step(step: Facts) -> Facts:
    title = f"{step['number']}. {step['tool']}: "
    verdict = str(step["verdict"])
    return {
        **step,
        "mark": _MARK.get(str(step["state"]), "·"),
        "said": _SAID.get(verdict, verdict) or str(step["state"]),
        "takes": _json(f"{title}arguments", step["arguments"]),
        "gives": _json(f"{title}answer", step["answer"]) if step["answer"] is not None else [],
        # A refusal's word is said already.
        "trouble": step["error"] if step["error"] not in verdict else "",
    }


def _end(result: Any) -> Facts | None:
    """How it ended; where its result is too long to be read here, its beginning."""
    if result is None:
        return None
    if not isinstance(result, dict) or "status" not in result:
        return {"status": "done", "error": None, "value": _json("what it returned", result), "output": ""}
    return {
        "status": result["status"],
        "error": result.get("error"),
        "value": _json("what it returned", result["result"]) if "result" in result else [],
        "output": result.get("output") or "",
    }


def _json(title: str, value: Any) -> list[Block]:
    if isinstance(value, str):
        return [Block(kind="text", title=title, spans=(("", value),))]
    return [Block(kind="json", title=title, spans=json_spans(shown.pretty(value)))]
