"""`checkrein trust`: what has been earned, and how it came about."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from checkrein import earning
from checkrein.call import Category
from checkrein.cli.opening import ask, confirmed, json_option, project_option, project_path, reading
from checkrein.cli.terminal import bar, dim, plain, say, say_json, table
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.ledger.query import Filter, entries
from checkrein.policies import Policies
from checkrein.policy.autonomy import autonomy, decision_for
from checkrein.policy.replay import replay as replay_line
from checkrein.policy.trustfile import parse, render
from checkrein.settings import Settings
from checkrein.settings.reading import LARGEST_FILE
from checkrein.store import Reader


@click.group()
def trust() -> None:
    """See what an agent has earned; bring it in, take it along, reset it."""


@trust.command()
@project_option
@json_option
def show(project: str | None, as_json: bool) -> None:
    """Show the project's trust by domain, and what each score means for a call today."""
    folder = project_path(project)
    with reading() as reader:
        settings, book = _book(reader, folder)
    model, now = earning.model_for(settings), time.time()
    scores = {domain: model.score(state, now) for domain, state in book.states.items()}
    if as_json:
        say_json(
            {
                "project": folder,
                "inherited": book.inherited,
                "domains": {
                    domain: msgspec.structs.asdict(state) | {"score": scores[domain]}
                    for domain, state in book.states.items()
                },
                "quarantined": book.bad,
            }
        )
        return
    say(f"{folder}\n")
    table(
        ("DOMAIN", "TRUST", "", "CALLS", "FAILED", "LOW", "MEDIUM", "HIGH"),
        [
            (
                domain,
                f"{scores[domain]:.3f}",
                bar(scores[domain]),
                str(s.total_operations),
                str(s.failures),
                *(_means(scores[domain], category, settings) for category in list(Category)[:3]),
            )
            for domain, s in book.states.items()
        ],
    )
    say(dim(f"a domain not listed starts at {book.inherited:.3f}"))
    for domain, why in book.bad.items():
        say(f"{domain} is not used: {why}.")


@trust.command()
@click.argument("domain", required=False)
@project_option
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1))
@json_option
def history(domain: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """Show what moved the trust of a project, newest first."""
    wanted = Filter(project=project_path(project), domain=domain)
    with reading() as reader:
        moved = []
        for each in entries(reader, wanted):
            if each.trust_score_after is not None and each.trust_score_after != each.trust_score_before:
                moved.append(each)
            if len(moved) == limit:
                break
    if as_json:
        say_json(moved)
        return
    table(
        ("TIME", "DOMAIN", "BEFORE", "AFTER", "BECAUSE"),
        [
            (
                each.completed_at or each.timestamp,
                each.domain,
                f"{each.trust_score_before or 0:.3f}",
                f"{each.trust_score_after:.3f}",
                f"{each.result} of {each.tool_name}" + (f" ({each.evidence})" if each.evidence else ""),
            )
            for each in moved
        ],
    )


@trust.command()
@click.option("--jsonl", is_flag=True, required=True, help="One JSON line in, one out.")
def replay(jsonl: bool) -> None:  # noqa: ARG001 - the only form there is, said aloud
    """Compute what a state becomes after events; a pure what-if on standard input.

    \b
    {"config": {"failure_decay": 0.85}, "start": {"score": 0.8}, "events": ["S", "F", "+20", "session"]}
    """
    for line in sys.stdin.buffer:
        if line.strip():
            click.echo(msgspec.json.encode(_replayed(line)).decode())


def _replayed(line: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(line)
        if not isinstance(decoded, dict):
            raise InputError("A line must be an object.")
        return replay_line(decoded)
    except CheckreinError as error:
        return {"error": error.as_json()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        return {"error": InputError(f"This line cannot be read: {error}").as_json()}


@trust.command("import")
@click.argument("file", type=click.Path(dir_okay=False))
@project_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def import_(file: str, project: str | None, yes: bool, as_json: bool) -> None:
    """Replace the project's trust with a v1 or v2 trust-scores.json. Scores that cannot be right stay out."""
    folder = project_path(project)
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise NotFoundError(f"{file}: {error.strerror}.", remedy="Name a trust-scores.json.") from None
    if len(content) > LARGEST_FILE:
        raise InputError(f"{file} is larger than {LARGEST_FILE} bytes.", remedy="Name a trust-scores.json.")
    count = len(parse(content, time.time()).states)
    confirmed(f"Replace the trust of {folder} with {count} domain(s)?", yes)
    report = ask("trust.import", project=folder, content=content, file=file)
    if as_json:
        say_json(report)
        return
    say(f"Imported {len(report['imported'])} domain(s) from a v{report['version']} file.")
    for domain, why in report["quarantined"].items():
        say(f"Left out {plain(domain)}: {plain(why)}.")


@trust.command()
@project_option
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="A file instead of standard output.")
def export(project: str | None, output: str | None) -> None:
    """Write the project's trust as a v2 trust-scores.json."""
    with reading() as reader:
        settings, book = _book(reader, project_path(project))
    content = render(book.states, settings.trust.initial_score, time.time())
    if output is None:
        say_json(content)
        return
    part = Path(f"{output}.new")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    part.replace(output)
    say(f"Wrote {output}.")


@trust.command()
@click.argument("domain", required=False)
@project_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(domain: str | None, project: str | None, yes: bool) -> None:
    """Forget what was earned, in one domain or in all of the project; it starts again at the beginning."""
    folder = project_path(project)
    confirmed(f"Reset {domain or 'all trust'} of {folder}?", yes)
    ask("trust.reset", project=folder, domain=domain)
    say("Reset.")


def _book(reader: Reader, folder: str) -> tuple[Settings, earning.Book]:
    loaded = Policies(reader).loaded(folder)
    if loaded.error:
        raise loaded.error
    return loaded.settings, earning.book(reader, folder, loaded.settings)


def _means(score: float, category: Category, settings: Settings) -> str:
    """What a plain call of this risk would get on trust alone."""
    value = autonomy(category, 0.5, score, settings.risk)
    return {"auto_approved": "runs", "logged_only": "logged", "human_required": "asks"}[
        decision_for(value, settings.autonomy)
    ]
