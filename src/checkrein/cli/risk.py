"""`checkrein risk`: what the classifier knows."""

from __future__ import annotations

import difflib

import click

from checkrein.classify import describe
from checkrein.cli.opening import json_option, project_option, project_path, reading
from checkrein.cli.terminal import fact, say_json
from checkrein.errors import NotFoundError
from checkrein.policies import Policies


@click.group()
def risk() -> None:
    """See what we know of a command. `checkrein explain` judges a whole line."""


@risk.command()
@click.argument("command", nargs=-1, required=True)
@project_option
@json_option
def table(command: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Show what is known of COMMAND, e.g. `checkrein risk table git log`: options, effects, risk."""
    name = " ".join(command)
    with reading() as reader:
        tables = Policies(reader).of(project_path(project)).tables
    known = describe(name, tables=tables)
    if not known:
        near = difflib.get_close_matches(name, tables.commands, n=1)
        hint = (
            f"Did you mean `{near[0]}`?" if near else "Unknown commands are medium; add it under [commands]."
        )
        raise NotFoundError(f"We know nothing of `{name}`.", remedy=hint)
    if as_json:
        say_json(known)
        return
    for key, value in known.items():
        if value not in ("", [], {}, None):
            fact(key, value, 14)
