"""How `checkrein servers` asks: always the running server, with a line of progress when it takes a while."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

import click

from checkrein import knocking
from checkrein.cli.terminal import dim
from checkrein.errors import InputError

# A server that is fetched when it is first started may take this long.
PATIENT_SECONDS = 180.0
_QUIET_SECONDS = 1.0


def ask_server(verb: str, /, *, doing: str = "", **params: Any) -> Any:
    """What the server answers, which is started if need be; `doing` is shown when it takes over a second."""
    with progress(doing):
        return knocking.ask(knocking.start(), verb, params, PATIENT_SECONDS)


@contextlib.contextmanager
def progress(doing: str) -> Iterator[None]:
    """A line on standard error once something has taken a second."""
    said = threading.Timer(_QUIET_SECONDS, lambda: click.echo(dim(f"{doing} ..."), err=True))
    said.daemon = True
    if doing:
        said.start()
    try:
        yield
    finally:
        said.cancel()


def on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def pairs(given: tuple[str, ...], mark: str, option: str) -> dict[str, str]:
    """`--env A=b` as a table. What is given without a value is not in it."""
    found: dict[str, str] = {}
    for text in given:
        key, found_mark, value = text.partition(mark)
        if not found_mark or not key.strip():
            # INVARIANT: what stands in the wrong place may be a secret and is not repeated.
            raise InputError(
                f"{option} needs a name and a value.", remedy=f"Write {option} 'NAME{mark}VALUE'."
            )
        found[key.strip()] = value.strip()
    return found
