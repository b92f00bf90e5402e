"""`checkrein status`: server, phase, sessions, trust, questions and the latest verdicts on one page."""

from __future__ import annotations

from typing import Any

import click

from checkrein import overview
from checkrein.cli.opening import json_option, project_option, project_path, reading
from checkrein.cli.phase import meaning
from checkrein.cli.terminal import bar, dim, plain, say, say_json, shortened, table, word

_TODAY = {"auto_approved": "runs", "logged_only": "logged", "human_required": "asks", "blocked": "refused"}


@click.command()
@project_option
@json_option
def status(project: str | None, as_json: bool) -> None:
    """Show how things stand in a project: who works in it, what runs unasked, what waits for you."""
    with reading() as reader:
        found = overview.overview(reader, project_path(project))
    if as_json:
        say_json(found)
        return
    _server(found["server"])
    say(f"project {plain(found['project'])}")
    if found["fault"]:
        say(f"every call is refused: {plain(found['fault'])}")
    unset = "" if found["phase"]["is_set"] else " (none is set, so the strictest applies)"
    say(f"phase   {found['phase']['name']}{unset}")
    for line in meaning(found["phase"]):
        say(dim(f"        {line}"))
    _sessions(found["sessions"])
    _trust(found["trust"])
    _questions(found["questions"])
    _recent(found["recent"])


def _server(about: dict[str, Any]) -> None:
    if not about["running"]:
        say(f"server  not running; the next hook starts it{_because(about.get('trouble'))}")
        return
    health = "; ".join(f"{name} {about[name]}" for name in ("ledger", "mirror"))
    say(f"server  {about['version']}, process {about['pid']}; {plain(health)}")


def _because(text: str | None) -> str:
    return f" ({plain(text)})" if text else ""


def _sessions(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    say("\nsessions")
    table(
        ("ID", "AGENT", "STARTED", "CALLS", "PHASE", ""),
        [
            (
                each["session_id"],
                each["agent"],
                each["started_at"],
                str(each["operation_count"]),
                each["phase"],
                "ended" if each["ended_at"] else "",
            )
            for each in found
        ],
    )


def _trust(found: dict[str, Any]) -> None:
    say("\ntrust")
    rows = [*found["domains"].items(), ("any other", found["unused"])]
    table(
        ("DOMAIN", "SCORE", "", "LOW", "MEDIUM", "HIGH", "NEXT"),
        [
            (
                domain,
                f"{each['score']:.3f}",
                bar(each["score"], 10),
                *(_TODAY[each["today"][level]] for level in ("low", "medium", "high")),
                next_step(each["next"]),
            )
            for domain, each in rows
        ],
    )
    for domain, why in found["quarantined"].items():
        say(f"{plain(domain)} is not used: {plain(why)}.")


def next_step(found: dict[str, Any] | None) -> str:
    """`2 more successes until medium runs unasked`"""
    if found is None:
        return ""
    count = found["successes"]
    return f"{count} more success{'es' if count > 1 else ''} until {found['risk']} runs unasked"


def _questions(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    say("\nwaiting for you (`checkrein inbox`)")
    table(
        ("ID", "RISK", "TOOL", "INPUT", "EXPIRES"),
        [
            (
                each["id"],
                each.get("risk", ""),
                each.get("tool", ""),
                shortened(each.get("input")),
                each["expires_at"],
            )
            for each in found
        ],
    )


def _recent(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    say("\nlatest")
    for each in found:
        came = each["answer"] or each["result"]
        line = f"{plain(each['tool'])}  {plain(shortened(each['input']))}"
        say(f"{each['timestamp']} {word(each['verdict'], 5)} {each['risk']:<8} {came:<9} {line}")
