"""The console: a person asks for the link that signs their browser in."""

from __future__ import annotations

from typing import Any

from checkrein.authority import Asked, Params, verb
from checkrein.authority.passphrase import check
from checkrein.errors import InputError


@verb("console.open", person=True)
def open_(asked: Asked, params: Params) -> dict[str, Any]:
    """{"passphrase"?}: a link that works once, for a minute; the console starts with the first one."""
    check(params.get("passphrase"))
    if asked.console is None:
        raise InputError("No server is running.", remedy="Run `checkrein up`.")
    url = asked.console()
    asked.pipeline.note("console_opened", {"actor": asked.actor})
    return {"url": url}
