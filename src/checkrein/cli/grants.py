"""`checkrein grants | release | passphrase`: what a person allowed for longer, and what they let pass."""

from __future__ import annotations

import sys

import click

from checkrein.cli.opening import ask, confirmed, json_option
from checkrein.cli.terminal import plain, say, say_json, table
from checkrein.errors import InputError


@click.group()
def grants() -> None:
    """See and take back what you allowed for more than once."""


@grants.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List what is remembered: for what, by whom, until when, how often used."""
    found = ask("grant.list")
    if as_json:
        say_json(found)
        return
    table(
        ("ID", "FOR", "UNTIL", "USED", "BY", "WHAT", "PROJECT"),
        [
            (
                each["id"],
                "session" if each["session"] else "uses" if each["uses"] else "always",
                each["until"] or "",
                f"{each['used']}/{each['uses']}" if each["uses"] else str(each["used"]),
                each["made_by"],
                each["label"],
                each["project"],
            )
            for each in found
        ],
    )


@grants.command()
@click.argument("grant_id")
def revoke(grant_id: str) -> None:
    """Take one back; the next call asks again."""
    gone = ask("grant.revoke", id=grant_id)
    say(f"Revoked {gone['id']}: {plain(gone['label'])}.")


@click.command()
@click.argument("call")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def release(call: str, yes: bool, as_json: bool) -> None:
    """Let one blocked critical call pass, once: exactly as it was, in a short while. See `audit list`."""
    confirmed(f"Let {call} pass once, exactly as it was?", yes)
    made = ask("release.make", entry=call, passphrase=asked_passphrase())
    if as_json:
        say_json(made)
        return
    say(f"Released until {made['until']}: {plain(made['tool'])}. The agent may try it again.")


@click.command()
@click.option("--remove", is_flag=True, help="Ask for none any more.")
def passphrase(remove: bool) -> None:
    """Set the passphrase that sign-in and releases ask for: what ancestry cannot tell, it can."""
    old = asked_passphrase()
    new = "" if remove else click.prompt("New passphrase", hide_input=True, confirmation_prompt=True)
    ask("passphrase.set", new=new, old=old)
    say("Removed." if remove else "Set. It is asked for at sign-in and at every release.")


def asked_passphrase() -> str | None:
    """Asked for only where one is set."""
    if not ask("passphrase.state")["is_set"]:
        return None
    if not sys.stdin.isatty():
        raise InputError("This needs the approver's passphrase.", remedy="Run it in a terminal.")
    given: str = click.prompt("Passphrase", hide_input=True)
    return given
