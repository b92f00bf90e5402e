"""Opens the user's store for a command: for reading without a lock, or as the one authority that writes."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.settings.project import project_of
from checkrein.settings.sources import state_dir
from checkrein.store import Reader, Row
from checkrein.store.sqlite import FILE, SqliteStore

project_option = click.option(
    "--project", type=click.Path(file_okay=False), help="The project's folder.  [default: the current one]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Nothing:
    """What a store that does not exist yet answers."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:  # noqa: ARG002
        return []


@contextlib.contextmanager
def reading() -> Iterator[Reader]:
    """The store as it is; nothing is locked, made or changed."""
    if not (state_dir() / FILE).exists():
        yield Nothing()
        return
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        yield store
    finally:
        store.close()


@contextlib.contextmanager
def writing(overrides: Sequence[str] = ()) -> Iterator[Pipeline]:
    """The pipeline over the user's store, while no other process has it."""
    state = state_dir()
    pipeline = Pipeline(SqliteStore.open(state), state, overrides=overrides)
    try:
        yield pipeline
    finally:
        pipeline.close()


def project_path(given: str | None) -> str:
    return project_of(given or Path.cwd())


def actor() -> str:
    """Who is at the terminal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def confirmed(question: str, yes: bool) -> None:
    """Ask before something a person should mean; scripts say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("This needs a yes.", remedy="Run it in a terminal, or add --yes.")
    click.confirm(question, abort=True)
