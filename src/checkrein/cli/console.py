"""`checkrein open`: the web console, signed in once by a file that the browser is shown, or by a link.

Every user of the machine can read command lines, so the browser is started with a path and never with the
secret.
"""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from checkrein import knocking
from checkrein.cli.grants import asked_passphrase
from checkrein.cli.opening import json_option
from checkrein.cli.terminal import dim, say, say_json

_PASTE = "Paste it into your browser. It works once, for a minute. Give it to no program as an argument."
_NO_PAGE = (
    "No page? Some browsers (in a snap or flatpak) cannot read that file: run `checkrein open --no-browser`."
)


@click.command("open")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@json_option
def open_(no_browser: bool, as_json: bool) -> None:
    """Open the web console, signed in. The link works once, for a minute, on this machine."""
    secret = asked_passphrase()
    knocking.start().close()
    far = bool(os.environ.get("SSH_CONNECTION"))
    shows = not no_browser and not as_json and not far and sys.stdout.isatty() and _has_browser()
    if shows and _opened(_ask(secret, file=True)):
        return
    made = _ask(secret)
    if as_json:
        say_json(made)
        return
    say(made["url"])
    if sys.stdout.isatty():
        say(dim(_PASTE))
        if far and made.get("socket"):
            say(dim("First, on the machine your browser is on:"))
            say(dim(f"  ssh -L {made['port']}:{made['socket']} THIS-MACHINE"))


def _ask(secret: str | None, *, file: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = knocking.ask(
        knocking.start(), "console.open", {"passphrase": secret, "file": file}
    )
    return made


def _has_browser() -> bool:
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _opened(made: dict[str, Any]) -> bool:
    """Whether a browser was started; an older server knows no file."""
    path = made.get("file")
    if not path:
        return False
    address = Path(path).as_uri()
    say(f"Opening the console in your browser: {address}")
    say(dim(_NO_PAGE))
    with contextlib.suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False
