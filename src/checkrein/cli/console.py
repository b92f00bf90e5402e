"""`checkrein open`: the web console, signed in by a link that works once."""

from __future__ import annotations

import os
import sys
import webbrowser

import click

from checkrein import knocking
from checkrein.cli.grants import asked_passphrase
from checkrein.cli.opening import json_option
from checkrein.cli.terminal import dim, say, say_json


@click.command("open")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@json_option
def open_(no_browser: bool, as_json: bool) -> None:
    """Open the web console, signed in. The link works once, for a minute, on this machine."""
    secret = asked_passphrase()
    knocking.start().close()
    made = knocking.ask(knocking.start(), "console.open", {"passphrase": secret})
    if as_json:
        say_json(made)
        return
    say(made["url"])
    if not no_browser and sys.stdout.isatty() and not os.environ.get("SSH_CONNECTION"):
        say(dim("Opening it in your browser."))
        webbrowser.open(made["url"])
