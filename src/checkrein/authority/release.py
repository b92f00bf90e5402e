"""Releases: a person lets one blocked critical call pass, once, soon, exactly as it was."""

from __future__ import annotations

from typing import Any

from checkrein.asking import release_key
from checkrein.authority import Asked, Params, verb
from checkrein.authority.passphrase import check
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.ledger.query import entry
from checkrein.store import Transaction
from checkrein.store.releases import add_release


@verb("release.make", person=True)
def make(asked: Asked, params: Params) -> dict[str, Any]:
    """{"entry", "passphrase"?}: the agent may try exactly this call again; it passes the floor once."""
    check(params.get("passphrase"))
    pipeline = asked.pipeline
    found, told = entry(pipeline.store, str(params["entry"]))
    # INVARIANT: only what the floor blocked is released; a deny of a rule or a phase stays.
    if found.stage != "floor" or found.risk_category != "critical" or found.verdict != "deny":
        raise InputError(f"{found.id} was not blocked for its critical risk.", remedy="Nothing to release.")
    data = told[0]["data"]
    now = pipeline.clock()
    until = now + pipeline.policies.of(found.project).settings.approval.release_seconds
    key = release_key(
        data["project"], data["server"], data["tool"], data["argument_hash"], data.get("cwd", "")
    )

    def change(tx: Transaction) -> None:
        add_release(tx, found.id, key, now, until, asked.actor)
        note = {"project": found.project, "session": found.session_id, "actor": asked.actor, "until": until}
        pipeline.ledger.append(tx, "released", note, entry=found.id)

    pipeline.store.write(change, durable=True)
    return {"entry": found.id, "until": moment(until), "tool": found.tool_name, "input": found.tool_input}
