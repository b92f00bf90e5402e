"""The command line. Each group lives in a module of its name and is imported when it is used."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import Any

import click

from checkrein import __version__
from checkrein.errors import CheckreinError

# What the overview shows: by what a person wants to do, each command with its module and one sentence.
GROUPS = {
    "Getting started": {
        "install": ("install", "Put our hooks into an agent's settings."),
        "uninstall": ("install", "Take them out again."),
        "plugin": ("install", "Write our hooks as a Claude Code plugin."),
        "doctor": ("doctor", "Check that everything works, and say what does not."),
        "demo": ("demo", "Watch a coding agent's day, decided call by call."),
    },
    "Every day": {
        "status": ("status", "See how things stand: sessions, trust, what waits for you."),
        "inbox": ("inbox", "Stay reachable, and see what waits for you."),
        "approve": ("answers", "Say yes to a question."),
        "deny": ("answers", "Say no to a question."),
        "chat": ("chat", "Talk to a model that uses your tools, under your rules."),
        "open": ("console", "Open the web console, signed in."),
        "phase": ("phase", "Show or set what agents are here to do: plan, build or audit."),
        "watch": ("watch", "See verdicts, answers and outcomes as they happen."),
        "notify": ("notify", "Try whether you can be told of questions where you are."),
    },
    "MCP servers": {
        "servers": ("servers", "Add, look into, accept and connect the MCP servers behind the gateway."),
        "clients": ("clients", "Let MCP clients in over HTTP, each with its own token."),
        "eval": ("evals", "Run scripts that call tools, and see what became of them."),
        "mcp": ("mcp", "Serve MCP on standard input and output; MCP clients run this."),
    },
    "The policy": {
        "explain": ("explain", "Say what the verdict on a call would be, and why."),
        "rules": ("rules", "Write, order, check and try the rules."),
        "policy": ("policy", "See and accept a project's own policy file."),
        "grants": ("grants", "See and take back what you allowed for more than once."),
        "release": ("grants", "Let one blocked critical call pass, once."),
        "passphrase": ("grants", "Set the passphrase that sign-in and releases ask for."),
        "config": ("config", "Show, check and start the settings."),
        "risk": ("risk", "See what we know of a command."),
    },
    "The record": {
        "audit": ("audit", "Look up, verify and export the record."),
        "trust": ("trust", "See what has been earned; bring it in, take it along, reset it."),
    },
    "The server": {
        "serve": ("serve", "Run the server in the foreground."),
        "up": ("serve", "Start the server in the background."),
        "down": ("serve", "Stop the server."),
        "restart": ("serve", "Stop the server and start it again."),
        "logs": ("serve", "Show the server's own log."),
    },
}
COMMANDS = {name: found for group in GROUPS.values() for name, found in group.items()}


class Commands(click.Group):
    """The top-level commands, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"checkrein.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand:
            nearest = difflib.get_close_matches(args[0], COMMANDS, n=1)
            raise click.NoSuchCommand(args[0], possibilities=nearest, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in group.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Our errors end in one clear line on standard error and their own exit code."""
        try:
            return super().main(*args, **extra)
        except CheckreinError as error:
            click.echo(f"checkrein: {error}", err=True)
            sys.exit(error.exit_code)
        except Exception as error:
            if os.environ.get("CHECKREIN_DEBUG"):
                raise
            text = f"{type(error).__name__}: {error}"
            click.echo(
                f"checkrein: unexpected error: {text}. Please report it; CHECKREIN_DEBUG=1 shows more.",
                err=True,
            )
            sys.exit(70)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="checkrein %(version)s")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a setting for this command only."
)
@click.pass_context
def checkrein(ctx: click.Context, overrides: tuple[str, ...]) -> None:
    """Decide, for every tool call an AI agent makes, whether it may run, must ask, or is refused."""
    ctx.obj = overrides
