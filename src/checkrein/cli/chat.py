"""`checkrein chat`: talk to a model that uses your tools, under your rules."""

from __future__ import annotations

import os
import sys

import click

from checkrein.cli.chat_asking import session_named
from checkrein.cli.chat_providers import models, providers
from checkrein.cli.chat_screen import Screen
from checkrein.cli.chat_sessions import delete, export, import_, list_, search, show
from checkrein.cli.chat_talk import Asks, Talk, once, piped
from checkrein.cli.chat_terminal import interactive
from checkrein.cli.chat_tokens import token
from checkrein.cli.opening import json_option, project_path
from checkrein.errors import InputError


@click.group(invoke_without_command=True)
@click.option(
    "-m", "--model", metavar="MODEL", default="", help="PROVIDER/MODEL; see `checkrein chat models`."
)
@click.option("--session", metavar="ID", default="", help="Go on with this session.")
@click.option(
    "--once", "text", metavar="TEXT", help="Say this, print the answer, leave; - reads it from a pipe."
)
@click.option("--decline", is_flag=True, help="With --once: say no to whatever would have to be asked.")
@click.option(
    "--project", type=click.Path(file_okay=False), help="The folder whose rules hold.  [default: none]"
)
@json_option
@click.pass_context
def chat(
    ctx: click.Context,
    model: str,
    session: str,
    text: str | None,
    decline: bool,
    project: str | None,
    as_json: bool,
) -> None:
    """Talk to a model that uses your tools, under your rules.

    What rules allow runs, what they forbid does not; for the rest you are asked here, in the flow. Without a
    terminal what is piped in is said, and the answer printed. Exits 1 when there was no answer.
    """
    if os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is not None:
        return
    alone = text is not None or not sys.stdin.isatty()
    if (as_json or decline) and not alone:
        raise InputError("This goes with one question.", remedy="Add --once TEXT.")
    found = session_named(session) if session else ""
    where = project_path(project) if project else ""
    talk = Talk(Screen(apart=alone, silent=as_json), session=found, model=model, project=where)
    if not alone:
        interactive(talk)
        return
    said = piped() if text in (None, "-") else str(text)
    here = sys.stdin.isatty() and not as_json
    asks: Asks = "no" if decline else "here" if here else "elsewhere"
    if not once(talk, said, asks, as_json=as_json):
        raise SystemExit(1)


for _command in (list_, show, search, export, import_, delete, models, providers, token):
    chat.add_command(_command)
