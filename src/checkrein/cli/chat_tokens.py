"""`checkrein chat token`: programs that may use the HTTP API."""

from __future__ import annotations

from typing import Any

import click

from checkrein.cli.opening import ask, json_option
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.terminal import dim, say, say_json, table


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def token(ctx: click.Context, as_json: bool) -> None:
    """Tokens for programs that talk over HTTP. What an agent runs is refused whatever it shows."""
    if ctx.invoked_subcommand is None:
        _show(as_json, False)


@token.command()
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It reads conversations and changes nothing.")
@click.option("--approve/--no-approve", default=False, help="Whether it may answer what waits for a person.")
@json_option
def add(name: str, read_only: bool, approve: bool, as_json: bool) -> None:
    """Make a token. It is shown once; whoever has it can talk to your models."""
    made = ask_server("token.add", doing="Opening the port", name=name, read_only=read_only, approve=approve)
    if as_json:
        say_json(made)
        return
    say(f"Address  {made['url']}")
    say(f"Token    {made['token']}")
    say(dim(f"It may: {', '.join(made['may'])}. It is shown only now, and kept nowhere here."))
    say(dim(f"What there is: {made['url']}/openapi.json"))
    say(dim(f"Take it back with: checkrein chat token revoke {made['name']}"))


@token.command("list")
@click.option("--revoked", is_flag=True, help="Those that were taken back, too.")
@json_option
def list_(revoked: bool, as_json: bool) -> None:
    """Show every token, what it may do, and when it was used last."""
    _show(as_json, revoked)


@token.command()
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Take a token back, by its name or id; what it has open ends."""
    gone = ask("token.revoke", name=name)
    if as_json:
        say_json(gone)
        return
    say(f"Revoked {gone['name']} ({gone['id']}).")


def _show(as_json: bool, revoked: bool) -> None:
    found = ask("token.list", revoked=revoked)
    if as_json:
        say_json(found)
        return
    rows = [
        (
            each["name"],
            each["id"],
            ", ".join(each["may"]),
            each["made_at"],
            each["used_at"] or "never",
            _end(each),
        )
        for each in found
    ]
    table(("NAME", "ID", "MAY", "MADE", "USED", "REVOKED"), rows)
    if not found:
        say(dim("There are none. Make one with: checkrein chat token add NAME"))


def _end(token: dict[str, Any]) -> str:
    return f"{token['revoked_at']} by {token['revoked_by']}" if token["revoked_at"] else ""
