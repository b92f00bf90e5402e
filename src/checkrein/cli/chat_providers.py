"""`checkrein chat models | providers`: where models come from. Keys are asked for, never arguments."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.chat_showing import model_rows
from checkrein.cli.opening import confirmed, json_option
from checkrein.cli.terminal import dim, plain, say, say_json, table
from checkrein.errors import InputError

KINDS = ("openai", "anthropic", "google", "azure", "compatible")
_LONGEST_KEY = 10_000


@click.command()
@json_option
def models(as_json: bool) -> None:
    """Show every model that can be picked."""
    found = ask_chat("models")
    if as_json:
        say_json(found)
        return
    table(("MODEL", "CONTEXT", "KIND", ""), model_rows(found))


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def providers(ctx: click.Context, as_json: bool) -> None:
    """Show where models come from; add, test and remove providers."""
    if ctx.invoked_subcommand is not None:
        return
    found = ask_chat("providers")
    if as_json:
        say_json(found)
        return
    rows = [
        (
            each["name"],
            each["kind"],
            each["base_url"],
            each["key_from"] or ("set" if each["has_key"] else "none"),
            str(len(each["models"])),
            each["fault"] or ("" if each["enabled"] else "off"),
        )
        for each in found
    ]
    table(("NAME", "KIND", "ADDRESS", "KEY", "MODELS", ""), rows)


@providers.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), help="Needed for a new one.")
@click.option("--base-url", help="Its address, where it is not the usual one.")
@click.option("--api-version", help="For Azure.")
@click.option("--model", "names", multiple=True, help="A model it has; may be repeated.")
@click.option("--default-model", help="The one that is meant when none is named.")
@click.option("--key-env", metavar="NAME", help="Take the key from this environment variable, now.")
@click.option("--no-key", is_flag=True, help="It needs none, or has one already.")
@click.option("--off/--on", "off", default=None, help="Do not offer its models, or offer them again.")
@json_option
def add(
    name: str,
    kind: str | None,
    base_url: str | None,
    api_version: str | None,
    names: tuple[str, ...],
    default_model: str | None,
    key_env: str | None,
    no_key: bool,
    off: bool | None,
    as_json: bool,
) -> None:
    """Add a provider of models, or change one.

    Its key is asked for, or read from standard input; it is kept in your key store and shown by nothing.
    """
    wanted: dict[str, Any] = {
        "kind": kind,
        "base_url": base_url,
        "api_version": api_version,
        "models": list(names) or None,
        "default_model": default_model,
        "enabled": None if off is None else not off,
        "key": None if no_key else _key(name, key_env),
    }
    given = {each: value for each, value in wanted.items() if value is not None}
    made = ask_chat("provider_set", doing="Keeping it", name=name, **given)
    if as_json:
        say_json(made)
        return
    say(f"Kept {plain(name)}. See whether it answers: checkrein chat providers test {plain(name)}")


def _key(name: str, variable: str | None) -> str | None:
    """INVARIANT: a key comes from a prompt, a pipe or a variable: no list of processes ever shows it."""
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise InputError(f"The variable {variable} is not set here.", remedy="Export it first.")
        return value
    if sys.stdin.isatty():
        asked = f"Key of {name} (Enter for none)"
        return str(click.prompt(asked, hide_input=True, default="", show_default=False)).strip() or None
    return sys.stdin.read(_LONGEST_KEY).strip() or None


@providers.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove a provider and its key."""
    confirmed(f"Remove {name} and its key?", yes)
    ask_chat("provider_remove", name=name)
    say(f"Removed {plain(name)}.")


@providers.command()
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> None:
    """See whether a provider answers; exits 1 if it does not."""
    came = ask_chat("provider_test", doing=f"Asking {name}", name=name)
    if as_json:
        say_json(came)
    else:
        say(plain(came["text"]) + dim(f" ({came['seconds']:.1f} s)"))
    if not came["ok"]:
        raise SystemExit(1)


@providers.command()
@click.argument("name")
@json_option
def refresh(name: str, as_json: bool) -> None:
    """Ask a provider which models it has, and keep the list."""
    found = ask_chat("provider_refresh", doing=f"Asking {name}", name=name)
    if as_json:
        say_json(found)
        return
    for each in found:
        say(plain(each))


@providers.command()
@click.argument("model")
def default(model: str) -> None:
    """Set the model new conversations begin with, as PROVIDER/MODEL."""
    came = ask_chat("default", model=model)
    say(plain(f"New conversations begin with {came['provider']}/{came['model']}."))
