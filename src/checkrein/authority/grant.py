"""Grants: answers that were remembered, who gave them, and taking them back."""

from __future__ import annotations

from typing import Any

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.store import Reader, Transaction
from checkrein.store.grants import Grant, all_grants, get_grant, revoke_grant


def shown(grant: Grant) -> dict[str, Any]:
    """A grant as people read it."""
    return {
        "id": grant.id,
        "what": grant.what,
        "label": grant.label,
        "tool": grant.tool,
        "server": grant.server,
        "project": grant.project,
        "session": grant.session,
        "made_by": grant.made_by,
        "channel": grant.channel,
        "made_at": moment(grant.made_at),
        "until": None if grant.until is None else moment(grant.until),
        "uses": grant.uses,
        "used": grant.used,
        "last_used_at": None if grant.last_used_at is None else moment(grant.last_used_at),
        "entry": grant.entry,
    }


def living(reader: Reader, now: float) -> list[dict[str, Any]]:
    """Grants that can still cover a call, newest first."""
    return [
        shown(each)
        for each in all_grants(reader)
        if (each.until is None or each.until > now) and (each.uses is None or each.used < each.uses)
    ]


@verb("grant.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:  # noqa: ARG001
    return living(asked.pipeline.store, asked.pipeline.clock())


@verb("grant.revoke", person=True)
def revoke(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id"}: from the next call on it covers nothing."""
    grant = get_grant(asked.pipeline.store, str(params["id"]))
    now = asked.pipeline.clock()

    def change(tx: Transaction) -> None:
        if not revoke_grant(tx, grant.id, asked.actor, now):
            raise InputError(f"{grant.id} was revoked already.")

    data = {"id": grant.id, "label": grant.label, "project": grant.project, "actor": asked.actor}
    asked.pipeline.note("grant_revoked", data, change)
    return shown(grant)
