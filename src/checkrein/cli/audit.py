"""`checkrein audit`: look up, verify and export the record."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from checkrein.call import DECISIONS
from checkrein.cli.opening import ask, json_option, reading
from checkrein.cli.terminal import dim, fact, moment, plain, say, say_json, shortened, table, word
from checkrein.errors import InputError, LedgerDoubtError, LedgerError, NotFoundError
from checkrein.ledger.checkpoints import KEY, Checkpoint, Signer
from checkrein.ledger.entries import Entry
from checkrein.ledger.export import FORMATS
from checkrein.ledger.export import export as exported
from checkrein.ledger.query import Filter, entries, entry
from checkrein.ledger.query import stats as count
from checkrein.ledger.verify import UNKNOWABLE, Report
from checkrein.ledger.verify import verify as verify_record
from checkrein.settings.project import project_of
from checkrein.settings.sources import state_dir


@click.group()
def audit() -> None:
    """Look up, verify and export the record."""


def filters(command: Any) -> Any:
    """What a person remembers of a call, as options."""
    for option in reversed(
        (
            click.option("--since", metavar="TIME", help="Not before: 2h, 7d or ISO 8601."),
            click.option("--until", metavar="TIME", help="Before: 2h, 7d or ISO 8601."),
            click.option("--session", help="The agent's session id."),
            click.option("--project", type=click.Path(file_okay=False), help="The project's folder."),
            click.option("--tool", help="The tool's name, without its server."),
            click.option("--decision", type=click.Choice(DECISIONS)),
            click.option("--domain", help="A domain the call touched, e.g. file_write."),
        )
    ):
        command = option(command)
    return command


def _filter(given: dict[str, Any]) -> Filter:
    project = given.pop("project")
    since, until = moment(given.pop("since")), moment(given.pop("until"))
    return Filter(since=since, until=until, project=project and project_of(project), **given)


@audit.command("list")
@filters
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1))
@json_option
def list_(limit: int, as_json: bool, **given: Any) -> None:
    """List calls, newest first."""
    with reading() as reader:
        found = list(entries(reader, _filter(given), limit))
    if as_json:
        say_json(found)
        return
    table(
        ("ID", "TIME", "DECISION", "RESULT", "RISK", "TOOL", "INPUT"),
        [
            (
                e.id,
                e.timestamp,
                e.decision,
                e.answer or e.result,
                e.risk_category,
                e.tool_name,
                shortened(e.tool_input),
            )
            for e in found
        ],
    )


@audit.command()
@click.argument("call_id")
@json_option
def show(call_id: str, as_json: bool) -> None:
    """Show one call whole: what was asked, decided, answered and what came of it."""
    with reading() as reader:
        found, story = entry(reader, call_id)
    if as_json:
        say_json({"entry": found, "records": story})
        return
    say(f"{word(found.verdict)} {plain(found.tool_name)}  {dim(found.id)}")
    for name in Entry.__struct_fields__:
        value = getattr(found, name)
        if name not in ("id", "verdict", "tool_name", "reasons") and value not in (None, "", [], {}):
            fact(f"  {name}", value, 21)
    for reason in found.reasons:
        say(f"  - {plain(reason)}")


@audit.command()
@click.option(
    "--against", type=click.Path(dir_okay=False), help="A checkpoint kept elsewhere (`audit checkpoint`)."
)
@json_option
def verify(against: str | None, as_json: bool) -> None:
    """Check every record, checkpoint and signature.

    Exits 6 and names the first broken record if one is. Exits 8 if every record verifies but some are not
    proven, or something beside them was changed.
    """
    witnesses = _witnesses(against) if against else ()
    key = state_dir() / KEY
    with reading() as reader:
        public = Signer(state_dir()).public if key.exists() else ""
        report = verify_record(reader, state_dir(), public, witnesses=witnesses, progress=_progress(as_json))
    if as_json:
        say_json(
            {
                "ok": report.ok,
                "records": report.records,
                "head": report.head,
                "checkpoints": report.checkpoints,
                "broken": report.broken,
                "findings": report.findings,
                "notes": report.notes,
                "unsigned": report.unsigned,
                "against": report.against,
                "not_shown": not_shown(report),
            }
        )
    else:
        _say_report(report)
    if not report.ok:
        error = _as_error(report)
        if as_json:
            raise SystemExit(error.exit_code)
        raise error


def not_shown(report: Report) -> str:
    """What this check cannot know, in plain words."""
    if report.against:
        return (
            f"Up to record {report.against} this is the record the checkpoint kept elsewhere was made for. "
            f"Of what came after: {UNKNOWABLE[0].lower()}{UNKNOWABLE[1:]}"
        )
    return UNKNOWABLE


def _say_report(report: Report) -> None:
    if report.broken is None:
        counted = f"{report.records} record(s) and {report.checkpoints} checkpoint(s)"
        say(f"{counted} verify. Head {report.head[:16]}.")
    for found in report.findings:
        say(f"Finding: {plain(found.reason)}.")
    for found in report.notes:
        say(dim(f"Note: {plain(found.reason)}."))
    if report.records:
        say(dim(not_shown(report)))


def _as_error(report: Report) -> LedgerError:
    if report.broken is not None:
        return LedgerError(
            f"The record is broken: {report.broken.reason}.",
            remedy="Records before it are good. Keep the store as evidence.",
        )
    return LedgerDoubtError(
        f"{len(report.findings)} finding(s): an undisturbed record shows none.",
        remedy="Compare it with a checkpoint kept elsewhere: `checkrein audit verify --against FILE`.",
    )


@audit.command()
def checkpoint() -> None:
    """Sign the record as it is and print the checkpoint, to be kept on another machine."""
    say(msgspec.json.encode(ask("ledger.checkpoint")).decode())


@audit.command()
@filters
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="A file instead of standard output.")
def export(form: str, output: str | None, **given: Any) -> None:
    """Write calls as CSV, JSON or JSON lines, newest first. CSV cells cannot become formulas."""
    with reading() as reader:
        pieces = exported(_counted(entries(reader, _filter(given)), "exported"), form)
        if output is None:
            for piece in pieces:
                sys.stdout.write(piece)
            return
        part = Path(f"{output}.new")
        with part.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
        part.replace(output)
    click.echo(f"Wrote {output}.", err=True)


@audit.command()
@filters
@json_option
def stats(as_json: bool, **given: Any) -> None:
    """Count calls by decision, result, risk, domain and tool."""
    with reading() as reader:
        counted = count(_counted(entries(reader, _filter(given)), "counted"))
    if as_json:
        say_json(counted)
        return
    say(f"{counted.pop('calls')} call(s)")
    for name, values in counted.items():
        if not values:
            continue
        say(f"\n{name}")
        for key, number in values.items():
            say(f"  {number:>8}  {plain(key)}")


def _witnesses(path: str) -> tuple[Checkpoint, ...]:
    try:
        return (msgspec.json.decode(Path(path).read_bytes(), type=Checkpoint),)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is not a checkpoint: {error}.") from None


def _progress(quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return None
    return lambda seq: click.echo(f"\r{seq} records checked", nl=False, err=True)


def _counted(found: Iterable[Entry], done: str) -> Iterator[Entry]:
    """The entries, with a count on a terminal that waits for them."""
    for number, each in enumerate(found, start=1):
        if number % 5000 == 0 and sys.stderr.isatty():
            click.echo(f"\r{number} calls {done}", nl=False, err=True)
        yield each
