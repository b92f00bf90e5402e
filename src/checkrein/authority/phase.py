"""Phases: a person sets them for a session, a project or everything they do."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.policy.phases import STRICTEST
from checkrein.store import Transaction
from checkrein.store.phases import all_phases, clear_phase, set_phase


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    project: str = ""
    session: str = ""


class _Set(_Place, kw_only=True):
    name: str


def switch(
    pipeline: Pipeline, name: str, actor: str, channel: str, *, project: str = "", session: str = ""
) -> None:
    """Set the phase and record who did; a phase nobody defined is refused."""
    known = pipeline.policies.of(project).settings.phases
    if name not in known:
        raise InputError(f"There is no phase {name!r}.", remedy=f"Use {', '.join(known)}.")
    now = pipeline.clock()

    def change(tx: Transaction) -> None:
        set_phase(tx, name, now, project=project, session=session)

    data = {"project": project, "session": session, "phase": name, "actor": actor, "channel": channel}
    pipeline.note("phase_changed", data, change)


@verb("phase.set", person=True)
def set_(asked: Asked, params: Params) -> None:
    """{"name", "project" or "session" or neither}"""
    wanted = msgspec.convert(params, _Set)
    switch(
        asked.pipeline, wanted.name, asked.actor, "terminal", project=wanted.project, session=wanted.session
    )


@verb("phase.clear", person=True)
def clear(asked: Asked, params: Params) -> int:
    """{"project" or "session" or neither}: what lies below applies again."""
    place = msgspec.structs.asdict(msgspec.convert(params, _Place))
    gone: list[int] = []
    data = {**place, "phase": None, "actor": asked.actor, "channel": "terminal"}
    asked.pipeline.note("phase_changed", data, lambda tx: gone.append(clear_phase(tx, **place)))
    return gone[0]


@verb("phase.show", person=False)
def show(asked: Asked, params: Params) -> dict[str, Any]:
    """{"project", "session"?}: the phase in force there, and everything that is set."""
    place = msgspec.convert(params, _Place)
    found = asked.pipeline.phase_of(place.project, place.session)
    return {
        "phase": found or STRICTEST,
        "is_set": found is not None,
        "set": [
            {"project": project, "session": session, "phase": name, "at": at}
            for project, session, name, at in all_phases(asked.pipeline.store)
        ],
    }
