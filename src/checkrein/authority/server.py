"""The server itself: who it is, and asking it to stop."""

from __future__ import annotations

import os
from typing import Any

from checkrein import __version__
from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError


@verb("server.about", person=False)
def about(asked: Asked, params: Params) -> dict[str, Any]:  # noqa: ARG001
    return {
        "version": __version__,
        "pid": os.getpid(),
        "running": asked.stop is not None,
        "ledger": asked.pipeline.ledger.broken or "ok",
        "mirror": asked.pipeline.mirror.trouble or "ok",
        "reachable": asked.pipeline.broker.reachable,
    }


@verb("server.attend", person=True)
def attend(asked: Asked, params: Params) -> None:
    """Stay reachable for questions; the server holds the line while somebody looks."""


@verb("server.stop", person=True)
def stop(asked: Asked, params: Params) -> None:  # noqa: ARG001
    """End the server once the answers on their way have left."""
    if asked.stop is None:
        raise InputError("No server is running.")
    asked.pipeline.note("server_stopped", {"actor": asked.actor})
    asked.stop()
