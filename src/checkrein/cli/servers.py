"""`checkrein servers`: the MCP servers behind the gateway, from the first to the last."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from checkrein.cli.opening import confirmed, json_option
from checkrein.cli.servers_asking import ask_server, on_a_terminal, pairs
from checkrein.cli.servers_connect import connect
from checkrein.cli.servers_import import import_
from checkrein.cli.servers_review import accept, browse, pending, refuse, review, risks, settle
from checkrein.cli.servers_secret import secret
from checkrein.cli.servers_show import (
    show_briefly,
    show_command,
    show_definitions,
    show_servers,
    show_state,
    show_test,
)
from checkrein.cli.servers_signin import sign_in, sign_out
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import CheckreinError, InputError
from checkrein.newcomers import entry_of, sign_in_of
from checkrein.settings.servers import check_name, server_spec


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def servers(ctx: click.Context, as_json: bool) -> None:
    """The MCP servers behind the gateway. Without a command: how they are.

    \b
    checkrein servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    checkrein servers import --from claude-code --dry-run
    checkrein servers connect claude-code --write
    """
    if ctx.invoked_subcommand is None:
        show(as_json)


@servers.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show every server: its state, its tools, its connections, its last error."""
    show(as_json)


def show(as_json: bool) -> None:
    found = ask_server("upstream.list", doing="Asking the server")
    if as_json:
        say_json(found)
    else:
        if found["fault"]:
            say(f"The servers file cannot be used: {plain(found['fault'])}")
        if found["fault"] and found["servers"]:
            say("What was in it before stays in force until then:")
        if found["servers"] or not found["fault"]:
            show_servers(found)
    if found["fault"]:
        sys.exit(3)


@servers.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", help="An address instead of a command.")
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent to that address.")
@click.option("--oauth", is_flag=True, help="Sign in at that address with OAuth.")
@click.option("--oauth-client-id", metavar="ID", help="As a client you registered at its provider.")
@click.option(
    "--oauth-client-secret",
    metavar="[SECRET]",
    is_flag=False,
    flag_value="",
    help="That client's secret, or a reference to it; without a value it is asked for.",
)
@click.option("--oauth-scope", multiple=True, metavar="SCOPE", help="Ask for this, and nothing else.")
@click.option("--oauth-redirect-uri", metavar="URL", help="The way back you registered for that client.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for it; without a value, yours of that name, else it is asked for.",
)
@click.option("--inherit", multiple=True, metavar="NAME", help="A variable of the server's to pass on.")
@click.option("--cwd", default="", type=click.Path(file_okay=False), help="The folder it runs in.")
@click.option("--share", type=click.Choice(["auto", "shared", "client"]), help="One for all, or one each.")
@click.option("--timeout", type=float, help="Seconds a call may take.")
@click.option("--trusted", is_flag=True, help="You vouch for it: what it says of its tools may lower risk.")
@click.option("--description", default="", help="What it is for.")
@click.option("--no-start", is_flag=True, help="Only write it down.")
@click.option("--yes", is_flag=True, help="Do not ask before it runs for the first time.")
@json_option
def add(name: str, command: tuple[str, ...], no_start: bool, yes: bool, as_json: bool, **given: Any) -> None:
    """Add a server: a command after `--`, or --url. Then it is started, and you see what it offers.

    \b
    checkrein servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    checkrein servers add issues --url https://mcp.example.com/mcp --header 'Authorization: Bearer ...'

    Values that look like secrets go into the secret store; the file only refers to them.
    """
    check_name(name)
    entry, secrets = _entry(name, command, given)
    spec = server_spec(name, entry)
    if not as_json:
        show_command(spec)
        for each in sorted(secrets):
            say(f"kept as a secret:       {plain(each)}")
    if on_a_terminal() and not as_json and not no_start:
        confirmed(f"Add {name} and run it now?", yes)
    entry["enabled"] = not no_start
    made = ask_server("upstream.add", doing="Writing it down", name=name, entry=entry, secrets=secrets)
    if no_start:
        say_json(made) if as_json else say(f"Added {name}. Start it: checkrein servers start {name}")
        return
    _first_run(name, as_json)


def _entry(
    name: str, command: tuple[str, ...], given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What the file will hold, and the values that will not be in it."""
    if bool(command) == bool(given["url"]):
        raise InputError(
            "Give a command or --url.", remedy=f"Example: checkrein servers add {name} -- COMMAND ARGUMENTS"
        )
    raw = {key: given[key] for key in ("url", "share", "timeout", "description") if given[key]}
    raw |= {"oauth": found} if (found := _sign_in(given)) else {}
    raw |= {"cwd": str(Path(given["cwd"]).absolute())} if given["cwd"] else {}
    raw["headers"] = pairs(given["headers"], ":", "--header")
    raw["env"] = pairs(tuple(map(_with_value, given["variables"])), "=", "--env")
    raw["inherit"] = list(given["inherit"])
    if command:
        raw["command"], raw["args"] = command[0], list(command[1:])
    raw |= {"trusted": True} if given["trusted"] else {}
    return entry_of(name, raw)


def _sign_in(given: dict[str, Any]) -> bool | dict[str, str]:
    """Whether there is a sign-in, and the client a person registered for it."""
    secret = given["oauth_client_secret"]
    if secret == "":
        secret = _asked("Secret of that client", "Write --oauth-client-secret '${env:NAME}'.")
    return sign_in_of(
        client_id=given["oauth_client_id"] or "",
        client_secret=secret or "",
        scope=" ".join(given["oauth_scope"]),
        redirect_uri=given["oauth_redirect_uri"] or "",
        wanted=bool(given["oauth"]),
    )


def _asked(what: str, remedy: str) -> str:
    if not sys.stdin.isatty():
        raise InputError(f"{what}: nobody is here to be asked.", remedy=remedy)
    return str(click.prompt(what, hide_input=True))


def _with_value(text: str) -> str:
    """`NAME` alone: the value it has here, else a person types it."""
    if "=" in text:
        return text
    value = os.environ.get(text)
    if value is None:
        if not sys.stdin.isatty():
            raise InputError(f"{text} is not set here.", remedy=f"Write --env {text}=VALUE.")
        value = click.prompt(f"Value of {text}", hide_input=True)
    return f"{text}={value}"


def _first_run(name: str, as_json: bool) -> None:
    """Start it, wait for what it says about itself, and let a person decide about that."""
    try:
        status = ask_server("upstream.start", doing=f"Starting {name}", name=name)
        found = pending(name)
    except CheckreinError as error:
        error.remedy = (
            f"{error.remedy} It stays added; `checkrein servers remove {name}` takes it out.".strip()
        )
        raise
    if as_json:
        say_json({"status": status, "pending": found})
        return
    show_state(status)
    if not found:
        say("It has nothing to accept.")
        return
    say(f"It offers {len(found)} definition(s); clients see them once you accept them:")
    show_briefly(found, risks(name))
    if not on_a_terminal():
        say(f"Accept them: checkrein servers accept {name}")
        return
    _decided(name, found)


def _decided(name: str, found: list[dict[str, Any]]) -> None:
    while True:
        choice = click.prompt(
            "Accept these definitions? y = yes, s = show them whole, n = not now",
            type=click.Choice(["y", "s", "n"]),
            show_choices=False,
            default="n",
        )
        if choice == "s":
            show_definitions(found, risks(name), whole=True)
            continue
        if choice == "y":
            settle("accept", name, found)
            say("Next: checkrein servers connect")
        else:
            say(f"Later: checkrein servers accept {name}")
        return


@servers.command()
@click.argument("name")
@json_option
def start(name: str, as_json: bool) -> None:
    """Start a server, now and whenever ours starts."""
    _tell(ask_server("upstream.start", doing=f"Starting {name}", name=name), as_json)


@servers.command()
@click.argument("name")
@json_option
def stop(name: str, as_json: bool) -> None:
    """Stop a server; it stays stopped until you start it. Calls under way end."""
    _tell(ask_server("upstream.stop", doing=f"Stopping {name}", name=name), as_json)


@servers.command()
@click.argument("name")
@json_option
def restart(name: str, as_json: bool) -> None:
    """Stop a server and start it again."""
    _tell(ask_server("upstream.restart", doing=f"Restarting {name}", name=name), as_json)


def _tell(status: dict[str, Any], as_json: bool) -> None:
    say_json(status) if as_json else show_state(status)


@servers.command()
@click.argument("name")
@click.option("-n", "count", default=50, show_default=True, type=click.IntRange(1, 1000), help="Lines.")
@json_option
def logs(name: str, count: int, as_json: bool) -> None:
    """Show what a server last wrote to its standard error; what looks like a secret is masked."""
    found = ask_server("upstream.logs", name=name, count=count)
    if as_json:
        say_json(found)
        return
    for line in found:
        say(plain(line))
    if not found:
        say("It has written nothing.")


@servers.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    """Take a server out of the file, with its sign-in and the secrets that were kept for it alone."""
    confirmed(f"Remove {name}?", yes)
    gone = ask_server("upstream.remove", doing=f"Stopping {name}", name=name)
    if as_json:
        say_json(gone)
        return
    say(f"Removed {name}." + (f" Forgot: {', '.join(gone['secrets'])}." if gone["secrets"] else ""))


@servers.command()
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> None:
    """Start a server apart from the running one, ask what it has, and end it."""
    found = ask_server("upstream.test", doing=f"Starting {name}", name=name)
    if as_json:
        say_json(found)
    else:
        show_test(found)


for each in (accept, browse, connect, import_, refuse, review, secret, sign_in, sign_out):
    servers.add_command(each)
