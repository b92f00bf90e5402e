"""Changes to the servers file: one at a time, each with its record, and then the gateway reads it.

The verbs of `authority.upstream` make them. A file that is broken is never written over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from checkrein.authority import Asked
from checkrein.errors import InputError, NotFoundError
from checkrein.settings.secrets import set_secret
from checkrein.settings.servers import ServerSpec, read_servers, write_servers

# One change to the file at a time: each begins with what the one before it left.
_CHANGING = threading.Lock()


def usable() -> dict[str, ServerSpec]:
    """The servers of a file that can be used; a broken one is not changed by us."""
    found = read_servers()
    if found.fault:
        raise InputError(found.fault, remedy="")
    return dict(found.servers)


def named(servers: Mapping[str, ServerSpec], name: str) -> ServerSpec:
    """The server of that name; raises NotFoundError with the names there are."""
    if name not in servers:
        known = ", ".join(sorted(servers)) or "none yet"
        raise NotFoundError(f"There is no server {name!r}.", remedy=f"There are: {known}.")
    return servers[name]


def change_servers(
    asked: Asked,
    data: dict[str, Any],
    change: Callable[[dict[str, ServerSpec]], None],
    kept: Mapping[str, str] | None = None,
) -> None:
    """The file as `change` leaves it and its record, both or neither; then the gateway reads it."""
    with _CHANGING:
        servers = usable()
        change(servers)
        for name, value in (kept or {}).items():
            set_secret(name, value)
        note_change(asked, data, lambda: write_servers(servers))
    if asked.gateway is not None:
        asked.gateway().reload()


def note_change(asked: Asked, data: dict[str, Any], work: Callable[[], None] = lambda: None) -> None:
    """The record of a change, and `work` with it: both or neither."""
    asked.pipeline.note("servers_changed", {**data, "actor": asked.actor}, lambda _tx: work())
