"""The console: a person asks for what signs their browser in, a link or a file with a form."""

from __future__ import annotations

from typing import Any, Protocol

from checkrein.authority import Asked, Params, verb
from checkrein.authority.passphrase import check
from checkrein.errors import InputError


class Console(Protocol):
    """The console of the running server."""

    @property
    def port(self) -> int: ...

    @property
    def socket(self) -> str:
        """Path of the socket that SSH can forward; empty where there is none."""

    def link(self) -> str:
        """A one-time address to sign in with."""

    def sign_in_file(self) -> str:
        """Path of a page of our own that signs the browser in which opens it, once."""


@verb("console.open", person=True)
def open_(asked: Asked, params: Params) -> dict[str, Any]:
    """{"passphrase"?, "file"?}: a link that works once, for a minute, or a file that holds it.

    The console starts with the first one.
    """
    check(params.get("passphrase"))
    if asked.console is None:
        raise InputError("No server is running.", remedy="Run `checkrein up`.")
    console = asked.console()
    wanted = params.get("file") is True
    made = {"file": console.sign_in_file()} if wanted else {"url": console.link()}
    asked.pipeline.note("console_opened", {"actor": asked.actor})
    return made | {"port": console.port, "socket": console.socket}
