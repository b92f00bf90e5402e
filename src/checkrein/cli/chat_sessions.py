"""`checkrein chat list | show | search | export | import | delete`: conversations as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from checkrein.cli.chat_asking import ask_chat, session_named, sessions
from checkrein.cli.chat_screen import transcript
from checkrein.cli.chat_showing import found_lines
from checkrein.cli.opening import confirmed, json_option
from checkrein.cli.terminal import dim, plain, plain_json, say, say_json, table
from checkrein.errors import InputError
from checkrein.wire import LARGEST_PAYLOAD

_FORMS = click.Choice(["json", "markdown"])
_ENDINGS = {".json": "json", ".md": "markdown", ".markdown": "markdown"}


@click.command("list")
@click.option("--archived", is_flag=True, help="Those that were put away.")
@json_option
def list_(archived: bool, as_json: bool) -> None:
    """Show conversations, pinned ones first, then the newest."""
    found = sessions(archived=archived)
    if as_json:
        say_json(found)
        return
    rows = [
        (
            each["id"],
            ("* " if each["pinned_at"] else "") + each["title"],
            str(each["message_count"]),
            _model(each),
            each["updated_at"],
        )
        for each in found
    ]
    table(("ID", "TITLE", "MESSAGES", "MODEL", "CHANGED"), rows)
    if not found:
        say(dim("There are none. Begin one with: checkrein chat"))


def _model(session: dict[str, Any]) -> str:
    return f"{session['provider']}/{session['model']}".strip("/")


@click.command()
@click.argument("session")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="The newest.")
@json_option
def show(session: str, limit: int, as_json: bool) -> None:
    """Print a conversation; the beginning of its id is enough."""
    found = ask_chat("session", id=session_named(session), limit=limit)
    if as_json:
        say_json(found)
        return
    say(click.style(plain(found["session"]["title"]), bold=True))
    if found["earlier"]:
        say(dim("Earlier messages are not shown; --limit shows more."))
    for line in transcript(found["messages"]):
        say(line)


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True)
@json_option
def search(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find words in titles and messages."""
    found = ask_chat("search", query=" ".join(words), limit=limit)
    if as_json:
        say_json(found)
        return
    for line in found_lines(found) or [dim("Nothing was found.")]:
        say(line)


@click.command()
@click.argument("session")
@click.option("--form", type=_FORMS, help="[default: by the file's ending, else markdown]")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file to write; it must not exist.")
def export(session: str, form: str | None, output: str | None) -> None:
    """Write a conversation: as JSON with everything in it, or as Markdown to read."""
    form = form or _ENDINGS.get(Path(output or "").suffix, "markdown")
    made = ask_chat("export", id=session_named(session), form=form)
    if output is None:
        shown = plain_json if form == "json" else plain if sys.stdout.isatty() else str
        click.echo(shown(made["text"]))
        return
    try:
        with Path(output).open("x", encoding="utf-8", errors="replace") as file:
            file.write(made["text"])
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}.", remedy="Take another name.") from None
    say(f"Written to {plain(output)}.")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--form", type=_FORMS, help="[default: by the file's ending, else json]")
@json_option
def import_(file: str, form: str | None, as_json: bool) -> None:
    """Make a conversation of a file that was exported; - reads standard input."""
    form = form or _ENDINGS.get(Path(file).suffix, "json")
    try:
        with click.open_file(file, encoding="utf-8") as source:
            text = source.read(LARGEST_PAYLOAD)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from None
    if len(text) >= LARGEST_PAYLOAD:
        raise InputError("This file is too large for the command line.", remedy="Import it in the console.")
    made = ask_chat("import", doing="Reading it", text=text, form=form)
    if as_json:
        say_json(made)
        return
    say(f"{made['id']}  {plain(made['title'])}, {made['message_count']} messages")


@click.command()
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(session: str, yes: bool) -> None:
    """Delete a conversation with all its messages. The record of its calls stays."""
    found = session_named(session)
    title = ask_chat("session", id=found, limit=1)["session"]["title"]
    confirmed(f"Delete {plain(title)!r}?", yes)
    ask_chat("delete", id=found)
    say(f"Deleted {plain(title)!r}.")
