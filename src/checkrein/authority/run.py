"""Scripts a person looks into, runs, wakes up or ends; agents may only see that they are there.

`cli.eval` and the console ask; the gateway of the running server does it.
"""

from __future__ import annotations

from typing import Any

from checkrein.authority import Asked, Params, verb
from checkrein.authority.gateway import gateway_of
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.store.runs import RunRow, latest_runs

MOST_SHOWN = 1_000
LONGEST_WAIT = 100.0


@verb("run.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:
    """{"limit"?}: scripts, the newest first."""
    limit = params.get("limit", 50)
    if not isinstance(limit, int) or not 0 < limit <= MOST_SHOWN:
        raise InputError(f"A limit is from 1 to {MOST_SHOWN}.")
    if asked.gateway is None:
        return [shown(each) for each in latest_runs(asked.pipeline.store, limit)]
    return gateway_of(asked).runs(limit)


def shown(row: RunRow) -> dict[str, Any]:
    """A run as people read it in a list."""
    return {
        "id": row.id,
        "state": row.state,
        "profile": row.profile,
        "language": row.language,
        "agent": row.agent,
        "owner": row.owner,
        "session": row.session,
        "project": row.project,
        "made_at": moment(row.made_at),
        "changed_at": moment(row.changed_at),
        "expires_at": moment(row.expires_at),
        "calls": row.calls,
        "asks": row.asks,
        "refusals": row.refusals,
    }


@verb("run.show", person=True)
def show(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id"}: one script: its text, its calls in order, what came of it."""
    return gateway_of(asked).run(str(params["id"]))


@verb("run.start", person=True)
def start(asked: Asked, params: Params) -> dict[str, Any]:
    """{"source", "language"?, "profile"?, "project"?, "wait"?}: run a script of a person's own."""
    source = params["source"]
    if not isinstance(source, str):
        raise InputError("A script is text.")
    return gateway_of(asked).eval_run(
        source,
        str(params.get("language", "javascript")),
        str(params.get("profile", "")),
        str(params.get("project", "")),
        _wait(params),
    )


@verb("run.resume", person=True)
def resume(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id", "wait"?}: what came of a script, or that it still runs or waits."""
    return gateway_of(asked).resume(str(params["id"]), _wait(params))


@verb("run.cancel", person=True)
def cancel(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id"}: end a script that runs or waits."""
    return gateway_of(asked).cancel(str(params["id"]), asked.actor)


def _wait(params: Params) -> float:
    wait = params.get("wait", 0)
    if not isinstance(wait, int | float) or not 0 <= wait <= LONGEST_WAIT:
        raise InputError(f"A wait is from 0 to {LONGEST_WAIT:g} seconds.")
    return float(wait)
