"""`checkrein eval preview`: what a script seems to call, read from its text; runs and decides nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from checkrein.cli.opening import json_option
from checkrein.cli.terminal import dim, say, say_json, table
from checkrein.errors import InputError, NotFoundError
from checkrein.execute.preview import LANGUAGES, MOST_BYTES, Language, ToolUse, preview

_BY_SUFFIX: dict[str, Language] = {
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".py": "python",
}
_WORDS = {
    "direct": "called",
    "literal": "called by its name as text",
    "alias": "called under another name",
    "indirect": "called through call, apply or bind",
    "reference": "handed on",
    "dynamic": "some tool: which one shows only when it runs",
    "eval": "code made from text",
}


@click.command("preview")
@click.argument("file", metavar="FILE")
@click.option(
    "--tools", multiple=True, metavar="NAMES", help="Names that are tools, with commas between them."
)
@click.option(
    "--language", type=click.Choice(LANGUAGES), help="What FILE is written in.  [default: by suffix]"
)
@json_option
def eval_preview(file: str, tools: tuple[str, ...], language: Language | None, as_json: bool) -> None:
    """Show which tools a script seems to call; FILE may be - for standard input.

    A script can hide its calls from a reader. What it really calls is judged call by call when it runs.

    \b
    checkrein eval preview clean.ts
    checkrein eval preview - --language python --tools fs__read_file,fs__delete_file < clean.py
    """
    names = [name for given in tools for name in re.split(r"[\s,]+", given) if name]
    spoken = language or language_of(file)
    seen = preview(source_of(file), spoken, names if tools else None)
    if seen.fault:
        click.echo(f"checkrein: {seen.fault} Nothing can be said of it before it runs.", err=True)
    if as_json:
        say_json(list(seen.uses))
    elif not seen.fault:
        _show(seen.uses)


def language_of(file: str) -> Language:
    """What a file is written in, by its suffix."""
    found = _BY_SUFFIX.get(Path(file).suffix.lower())
    if found is None:
        known = ", ".join(_BY_SUFFIX)
        raise InputError(
            f"The language of {file} is not known.", remedy=f"Give --language, or one of {known}."
        )
    return found


def source_of(file: str) -> str:
    """The text, or as much of it as shows that it is too long."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MOST_BYTES + 4)
        else:
            with Path(file).open("rb") as script:
                raw = script.read(MOST_BYTES + 4)
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {file}.", remedy="Check the path.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", remedy="Check the path.") from None
    try:
        return raw.decode(errors="strict" if len(raw) <= MOST_BYTES else "replace")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text.", remedy="Save it as UTF-8.") from None


def _show(uses: tuple[ToolUse, ...]) -> None:
    if not uses:
        say("No tool calls are seen.")
        return
    table(
        ("PLACE", "TOOL", "HOW"),
        ((f"{use.line}:{use.column}", use.tool or "?", _WORDS[use.kind]) for use in uses),
    )
    unknown = sum(use.tool is None for use in uses)
    if unknown:
        say(dim(f"{unknown} of {len(uses)} cannot be foretold."))
