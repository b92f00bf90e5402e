"""Where our hooks are registered: noted by the installer, looked at by the guard and by doctor."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.authority.phase import switch
from checkrein.store.installations import add_installation, installations, remove_installation

_FIRST_PHASE = "building"


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    agent: str
    folder: str


@verb("installation.add", person=True)
def add(asked: Asked, params: Params) -> dict[str, Any]:
    """{"agent", "folder"}: hooks go there now; without a phase of its own the place starts in building."""
    place, now = msgspec.convert(params, _Place), asked.pipeline.clock()
    agent, folder = place.agent, place.folder
    data = {"agent": agent, "project": folder, "actor": asked.actor}
    asked.pipeline.note("installed", data, lambda tx: add_installation(tx, agent, folder, now))
    if asked.pipeline.phase_of(folder, "") is None:
        switch(asked.pipeline, _FIRST_PHASE, asked.actor, "install", project=folder)
    return {"phase": asked.pipeline.phase_of(folder, "")}


@verb("installation.remove", person=True)
def remove(asked: Asked, params: Params) -> None:
    """{"agent", "folder"}: from now on the guard lets our registrations be taken out."""
    place = msgspec.convert(params, _Place)
    agent, folder = place.agent, place.folder
    data = {"agent": agent, "project": folder, "actor": asked.actor}
    asked.pipeline.note("uninstalled", data, lambda tx: remove_installation(tx, agent, folder))


@verb("installation.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, str]]:  # noqa: ARG001
    return [{"agent": agent, "folder": folder} for agent, folder in installations(asked.pipeline.store)]
