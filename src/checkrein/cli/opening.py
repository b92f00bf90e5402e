"""What commands stand on: the store for reading, and the authority for everything that changes something."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from checkrein import authority, knocking
from checkrein.agents import Agents
from checkrein.errors import InputError, StoreBusyError
from checkrein.pipeline import Pipeline
from checkrein.settings.project import project_of
from checkrein.settings.sources import state_dir
from checkrein.store import Reader, Row
from checkrein.store.sqlite import FILE, SqliteStore

LOCK_SECONDS = 3.0
project_option = click.option(
    "--project", type=click.Path(file_okay=False), help="The project's folder.  [default: the current one]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Nothing:
    """What a store that does not exist yet answers."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:  # noqa: ARG002
        return []

    def writes_to(self, table: str) -> int | None:  # noqa: ARG002
        return None


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


def ask(verb: str, **params: Any) -> Any:
    """Ask the authority: the server where one runs, else this process under the same lock and rules."""
    connection = knocking.connect()
    if connection is not None:
        return knocking.ask(connection, verb, params)
    try:
        return _performed_here(verb, params)
    except StoreBusyError as error:
        # A server that is just starting holds the store before it answers.
        connection = knocking.connect()
        if connection is None:
            raise StoreBusyError(
                error.message, remedy="Try again; `checkrein doctor` says if a server hangs."
            ) from None
        return knocking.ask(connection, verb, params)


def _performed_here(verb: str, params: dict[str, Any]) -> Any:
    """Where no server runs: the same verb, the same check that a person asks."""
    state = state_dir()
    pipeline = Pipeline(SqliteStore.open(state, wait=LOCK_SECONDS), state)
    try:
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        return authority.perform(authority.Asked(pipeline, agents, authority.myself()), verb, params)
    finally:
        pipeline.close()


def project_path(given: str | None) -> str:
    return project_of(given or Path.cwd())


def confirmed(question: str, yes: bool) -> None:
    """Ask before something a person should mean; scripts say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("This needs a yes.", remedy="Run it in a terminal, or add --yes.")
    click.confirm(question, abort=True)
