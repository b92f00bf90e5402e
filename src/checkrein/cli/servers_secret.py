"""`checkrein servers secret`: values servers need, kept apart from the servers file and shown to nobody."""

from __future__ import annotations

import sys

import click

from checkrein.cli.opening import confirmed, json_option
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.terminal import plain, say, say_json, table
from checkrein.errors import InputError
from checkrein.settings.secrets import LONGEST


@click.group()
def secret() -> None:
    """Keep values servers need. The servers file refers to them: ${keyring:NAME}. No command shows one."""


@secret.command("set")
@click.argument("name")
@json_option
def set_(name: str, as_json: bool) -> None:
    """Keep a value under a name; it is asked for, or read from standard input."""
    made = ask_server("upstream.set_secret", doing="Asking the key store", name=name, value=_value(name))
    if as_json:
        say_json(made)
        return
    place = "your key store" if made["place"] == "keyring" else "a file only you can read"
    say(f"Kept {plain(name)} in {place}.")
    for server in made["used_by"]:
        say(f"{plain(server)} uses it from its next start: checkrein servers restart {plain(server)}")


@secret.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show the names of kept values, where they are, and which servers refer to them."""
    found = ask_server("upstream.secrets")
    if as_json:
        say_json(found)
        return
    rows = [(each["name"], each["place"] or "not set", ", ".join(each["used_by"])) for each in found]
    table(("NAME", "KEPT IN", "USED BY"), rows)


@secret.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Forget a value."""
    confirmed(f"Forget the value of {name}?", yes)
    made = ask_server("upstream.remove_secret", name=name)
    say(f"Forgot {plain(name)}.")
    if made["used_by"]:
        say(f"Still referred to by: {plain(', '.join(made['used_by']))}.")


def _value(name: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True))
    # INVARIANT: a value comes from a prompt or a pipe, so that no list of processes ever shows it.
    value = sys.stdin.read(LONGEST + 2).removesuffix("\n").removesuffix("\r")
    if not value:
        raise InputError("There is no value on standard input.", remedy="Pipe it in, or use a terminal.")
    return value
