"""`checkrein doctor`: proves the whole way from an agent's hook to the record, and names what is wrong."""

from __future__ import annotations

import click

from checkrein.cli.checks import Finding, findings
from checkrein.cli.opening import json_option, project_path
from checkrein.cli.terminal import plain, say, say_json
from checkrein.doors.hooks.dialects import AGENTS


@click.command()
@click.argument("agent", type=click.Choice(AGENTS), required=False)
@json_option
def doctor(agent: str | None, as_json: bool) -> None:
    """Check everything, live: the server, the files, the hooks, and that a forbidden call is refused.

    Exits 1 when anything is wrong. Starts the server when none runs.
    """
    found: list[Finding] = []
    for each in findings(project_path(None), agent):
        found.append(each)
        if not as_json:
            _tell(each)
    wrong = sum(not each.ok for each in found)
    if as_json:
        say_json({"ok": not wrong, "checks": found})
    else:
        say(f"{wrong} problem(s)." if wrong else "Everything works.")
    if wrong:
        raise SystemExit(1)


def _tell(each: Finding) -> None:
    mark = click.style("ok     ", fg="green") if each.ok else click.style("problem", fg="red", bold=True)
    say(f"{mark} {plain(each.name)}: {plain(each.text)}")
    if each.remedy:
        say(f"        {plain(each.remedy)}")
