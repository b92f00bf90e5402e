"""Earned trust: a person brings it in from a file, or takes it away."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.policy.trustfile import parse
from checkrein.store import Transaction
from checkrein.store.trust import delete_trust, put_trust


class _Import(msgspec.Struct, forbid_unknown_fields=True):
    project: str
    # The file itself, not its name: who asks may see other files than the server does.
    content: bytes
    file: str = ""


class _Reset(msgspec.Struct, forbid_unknown_fields=True):
    project: str
    domain: str | None = None


@verb("trust.import", person=True)
def import_(asked: Asked, params: Params) -> dict[str, Any]:
    """{"project", "content", "file"?}: replaces the project's trust; scores that cannot be right stay out."""
    wanted = msgspec.convert(params, _Import)
    found = parse(wanted.content, asked.pipeline.clock())
    scores = {domain: state.score for domain, state in found.states.items()}

    def change(tx: Transaction) -> None:
        delete_trust(tx, wanted.project)
        for domain, state in found.states.items():
            put_trust(tx, wanted.project, domain, msgspec.structs.asdict(state))

    told = {"project": wanted.project, "version": found.version, "quarantined": found.bad}
    data = {**told, "file": wanted.file, "scores": scores, "actor": asked.actor}
    asked.pipeline.note("trust_imported", data, change)
    return {**told, "imported": scores}


@verb("trust.reset", person=True)
def reset(asked: Asked, params: Params) -> int:
    """{"project", "domain"?}: what was earned there is forgotten; how many domains that were."""
    wanted = msgspec.convert(params, _Reset)
    gone: list[int] = []
    data = {"project": wanted.project, "domain": wanted.domain, "actor": asked.actor}
    asked.pipeline.note(
        "trust_reset", data, lambda tx: gone.append(delete_trust(tx, wanted.project, wanted.domain))
    )
    return gone[-1]
