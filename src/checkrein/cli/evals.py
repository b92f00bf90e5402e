"""`checkrein eval`: scripts that call tools: run one, see what became of it, come back to it, end it."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
import msgspec

from checkrein.cli.answers import answer
from checkrein.cli.eval_preview import eval_preview, language_of, source_of
from checkrein.cli.evals_show import ended_badly, show_end, show_run, show_runs, show_waiting
from checkrein.cli.opening import json_option, project_option, project_path
from checkrein.cli.servers_asking import ask_server, on_a_terminal
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import CheckreinError
from checkrein.execute.preview import LANGUAGES, Language

Facts = dict[str, Any]
FAILED, WAITS = 1, 75
_WAIT, _SOON = 30.0, 0.05
_UNFINISHED = ("running", "paused")


@click.group("eval")
def eval_() -> None:
    """Run scripts that call tools; every call of theirs is judged as any other.

    \b
    checkrein eval run clean.ts --profile safe
    checkrein eval runs
    checkrein eval show run-1f6c...
    """


eval_.add_command(eval_preview)


@eval_.command("run")
@click.argument("file", metavar="FILE")
@click.option("--profile", default="", help="Judge its calls by this profile.")
@click.option(
    "--language", type=click.Choice(LANGUAGES), help="What FILE is written in.  [default: by suffix]"
)
@project_option
@click.option("--no-wait", is_flag=True, help="Do not ask here: end as soon as it waits for an answer.")
@json_option
def run(
    file: str, profile: str, language: Language | None, project: str | None, no_wait: bool, as_json: bool
) -> None:
    """Run a script of your own through the gateway; FILE may be - for standard input.

    In a terminal you are asked here about calls that need a yes. Elsewhere the run is left waiting and the
    exit code is 75: answer in the inbox or the console, then `checkrein eval resume`. A failed script: 1.
    """
    source, spoken = source_of(file), language or language_of(file)
    found = ask_server(
        "run.start",
        doing="Running it",
        source=source,
        language=spoken,
        profile=profile,
        project=project_path(project),
        wait=_WAIT,
    )
    # The script came on standard input: nobody types there.
    _finish(found, as_json, here=file != "-" and not no_wait)


@eval_.command()
@click.option("-n", "limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@json_option
def runs(limit: int, as_json: bool) -> None:
    """Show runs, the newest first: whose they are and how far they got."""
    found = ask_server("run.list", limit=limit)
    say_json(found) if as_json else show_runs(found)


@eval_.command()
@click.argument("run_id", metavar="ID")
@json_option
def show(run_id: str, as_json: bool) -> None:
    """Show one run: its script with its calls marked, what was decided about each, what came of it.

    The beginning of an id is enough. What looks like a secret is masked.
    """
    found = ask_server("run.show", id=_whole(run_id))
    say_json(found) if as_json else show_run(found)


@eval_.command()
@click.argument("run_id", metavar="ID")
@click.option("--no-wait", is_flag=True, help="Only say how it stands.")
@json_option
def resume(run_id: str, no_wait: bool, as_json: bool) -> None:
    """Wait for a run to end, and show its result; in a terminal, answer what it waits for."""
    found = _come_back(_whole(run_id), 0 if no_wait else _WAIT)
    _finish(found, as_json, here=not no_wait, follow=not no_wait)


@eval_.command()
@click.argument("run_id", metavar="ID")
@json_option
def cancel(run_id: str, as_json: bool) -> None:
    """End a run that runs or waits. What it has called already is not undone."""
    found = ask_server("run.cancel", id=_whole(run_id))
    say_json(found) if as_json else say(f"{found['id']}: {found['state']}")


def _whole(start: str) -> str:
    """The id that begins like this, where there is just one; else the server says that there is none."""
    every = [each["id"] for each in ask_server("run.list", limit=1000)]
    found = [each for each in every if each.startswith((start, f"run-{start}"))]
    return str(found[0]) if len(found) == 1 and start not in every else start


def _come_back(run_id: str, wait: float = _WAIT) -> Facts:
    found: Facts = ask_server("run.resume", doing="Waiting for it", id=run_id, wait=wait)
    return found


def _finish(found: Facts, as_json: bool, *, here: bool, follow: bool = True) -> None:
    """Go on until it has ended, or waits for somebody who is not here."""
    asking = here and not as_json and on_a_terminal()
    while found["status"] in _UNFINISHED and follow:
        open_ = _open(found)
        if open_ and not asking:
            break
        for each in open_:
            _asked(found["run_id"], each)
        if found["status"] == "paused" and not open_:
            # Answered already, and about to go on.
            time.sleep(_SOON)
        found = _come_back(found["run_id"])
    if as_json:
        say_json(found)
    elif found["status"] in _UNFINISHED:
        show_waiting(found)
    else:
        show_end(found)
    if found["status"] in _UNFINISHED:
        sys.exit(WAITS)
    if ended_badly(found):
        sys.exit(FAILED)


def _open(found: Facts) -> list[Facts]:
    """What it waits for that nobody has answered yet."""
    if not found.get("waiting"):
        return []
    asked = {each["id"] for each in ask_server("question.list")}
    return [each for each in found["waiting"] if each["question"] in asked]


def _asked(run_id: str, waiting: Facts) -> None:
    """One call that needs a yes, asked in this terminal; somebody may have answered elsewhere meanwhile."""
    steps = ask_server("run.show", id=run_id)["timeline"]
    step: Facts = next((each for each in steps if each["entry"] == waiting["question"]), {})
    say(f"\nIt wants to call {click.style(plain(waiting['tool']), bold=True)} (line {waiting['line']}):")
    say(f"  {plain(_arguments(step))}")
    if waiting.get("why"):
        say(f"  {plain(waiting['why'])}")
    word = "approved" if click.confirm("Run this call?", default=False) else "denied"
    try:
        answer(waiting["question"], word)
    except CheckreinError as error:
        say(f"checkrein: {plain(str(error))}")


def _arguments(step: Facts) -> str:
    return msgspec.json.encode(step.get("arguments")).decode()
