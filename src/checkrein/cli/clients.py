"""`checkrein clients`: who may reach the gateway over HTTP."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from checkrein.cli.opening import ask, json_option
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.terminal import dim, say, say_json, table


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def clients(ctx: click.Context, as_json: bool) -> None:
    """MCP clients that reach the gateway over HTTP, each with a token of its own.

    Clients on standard input and output need none: see `checkrein servers connect`.
    """
    if ctx.invoked_subcommand is None:
        _show(as_json, False)


@clients.command("list")
@click.option("--revoked", is_flag=True, help="Those whose token was taken back, too.")
@json_option
def list_(revoked: bool, as_json: bool) -> None:
    """Show everybody with a token, and how often they are connected."""
    _show(as_json, revoked)


@clients.command()
@click.argument("name")
@json_option
def add(name: str, as_json: bool) -> None:
    """Give a client a token of its own. It is shown once; whoever has it can call your tools."""
    made = ask_server("client.add", doing="Opening the gateway's port", name=name)
    if as_json:
        say_json(made)
        return
    say(f"Address  {made['url']}")
    say(f"Token    {made['token']}")
    say(dim("It is shown only now, and kept nowhere here. Most clients take it like this:"))
    say()
    say(_pretty(made["settings"]))
    say()
    say(dim(f"Take it back with: checkrein clients revoke {made['name']}"))


@clients.command()
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Take a client's token back, by its name or id; what it does here ends at once."""
    gone = ask("client.revoke", name=name)
    if as_json:
        say_json(gone)
        return
    say(f"Revoked {gone['name']} ({gone['id']}).")


def _show(as_json: bool, revoked: bool) -> None:
    found = ask("client.list", revoked=revoked)
    if as_json:
        say_json(found)
        return
    rows = [
        (each["name"], each["id"], each["made_at"], each["made_by"], str(each["connected"]), _end(each))
        for each in found
    ]
    table(("NAME", "ID", "MADE", "BY", "CONNECTED", "REVOKED"), rows)
    if not found:
        say(dim("Nobody has a token. Make one with: checkrein clients add NAME"))


def _end(client: dict[str, Any]) -> str:
    return f"{client['revoked_at']} by {client['revoked_by']}" if client["revoked_at"] else ""


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
