"""`checkrein servers sign-in` and `sign-out`: a person goes to a server's sign-in page and comes back."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from typing import Any

import click

from checkrein.cli.opening import json_option
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.servers_show import show_state
from checkrein.cli.terminal import dim, plain, say, say_json
from checkrein.errors import CheckreinError

LOOK_SECONDS = 0.5


@click.command("sign-in")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@json_option
def sign_in(name: str, no_browser: bool, as_json: bool) -> None:
    """Sign in at a server that wants to know who you are.

    Your browser opens the server's sign-in page; when you are done there, the server is started.
    """
    found = ask_server("upstream.sign_in", doing=f"Asking {name} where to sign in", name=name)
    if found["state"] == "waiting":
        _show_way(found, no_browser)
        found = _waited(name)
    if found["state"] == "failed":
        raise CheckreinError(found["reason"], remedy=found["remedy"])
    if as_json:
        say_json(found)
        return
    say(f"Signed in at {plain(name)}." if found["signed_in"] else f"{plain(name)} asks for no sign-in.")
    servers = ask_server("upstream.list")["servers"]
    status = next((each for each in servers if each["name"] == name), None)
    if status is not None:
        show_state(status)
        if status.get("hidden"):
            say(f"Next: checkrein servers review {plain(name)}")


def _show_way(found: dict[str, Any], no_browser: bool) -> None:
    """On standard error, so that what a script reads stays one answer."""
    far = bool(os.environ.get("SSH_CONNECTION"))
    click.echo("Sign in here:", err=True)
    click.echo(plain(found["url"]), err=True)
    if far:
        forward = f"ssh -L {found['port']}:127.0.0.1:{found['port']} THIS-MACHINE"
        click.echo(
            dim(f"Your browser comes back to port {found['port']} of its machine: {forward}"), err=True
        )
    if not no_browser and not far and sys.stderr.isatty():
        click.echo(dim("Opening it in your browser."), err=True)
        webbrowser.open(found["url"])
    click.echo(dim("Waiting for you to come back ..."), err=True)


def _waited(name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = ask_server("upstream.sign_in_state", name=name)
        if found["state"] == "none":
            raise CheckreinError(
                f"The sign-in at {name} was given up.", remedy="Somebody changed the server."
            )
        if found["state"] != "waiting":
            return found
        time.sleep(LOOK_SECONDS)


@click.command("sign-out")
@click.argument("name")
@json_option
def sign_out(name: str, as_json: bool) -> None:
    """Forget the sign-in at a server. What it granted ends there only if you end it on its own pages."""
    found = ask_server("upstream.sign_out", doing=f"Restarting {name}", name=name)
    if as_json:
        say_json(found)
        return
    say(f"Signed out of {plain(name)}." if found["forgot"] else f"Nobody was signed in at {plain(name)}.")
