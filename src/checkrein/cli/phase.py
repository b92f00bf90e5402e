"""`checkrein phase`: what the agents are here to do now, shown or set by a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from checkrein import overview
from checkrein.cli.opening import ask, json_option, project_path, reading
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import moment
from checkrein.policies import Policies
from checkrein.store import Reader
from checkrein.store.agents import newest_sessions
from checkrein.store.phases import all_phases

_SESSIONS = 1_000
# Where nothing lists a domain, trust decides in this phase; the others refuse.
_OPEN = "building"


@click.command()
@click.argument("name", required=False)
@click.option("--project", "scope", flag_value="project", help="For the current project (the default).")
@click.option("--user", "scope", flag_value="user", help="For everything without a phase of its own.")
@click.option("--session", metavar="ID", help="For one session; the beginning of its id is enough.")
@click.option("--clear", is_flag=True, help="Forget what is set there.")
@json_option
def phase(name: str | None, scope: str | None, session: str | None, clear: bool, as_json: bool) -> None:
    """Show the phase, or set it: planning, building or auditing. Only a person can.

    The session's phase counts before the project's, the project's before the user's; where none is set,
    auditing applies.
    """
    if sum((name is not None, clear)) > 1 or (scope and session):
        raise InputError("That is too much at once.", remedy="Give a name or --clear, and one scope.")
    folder = project_path(None)
    place = _place(scope, session, folder)
    if name is not None:
        ask("phase.set", name=name, **place)
    elif clear:
        ask("phase.clear", **place)
    _show(folder, place.get("session", ""), as_json, changed=_where(place) if name or clear else "")


def _place(scope: str | None, session: str | None, folder: str) -> dict[str, str]:
    if session is not None:
        with reading() as reader:
            return {"session": _session(reader, session)}
    return {} if scope == "user" else {"project": folder}


def _session(reader: Reader, start: str) -> str:
    """The session whose id begins so."""
    found = {each.id for each in newest_sessions(reader, limit=_SESSIONS) if each.id.startswith(start)}
    if start in found or len(found) == 1:
        return start if start in found else found.pop()
    if found:
        raise InputError(f"More than one session begins with {start!r}.", remedy="Give more of its id.")
    raise NotFoundError(f"No session {start!r} has been seen.", remedy="See `checkrein status`.")


def _where(place: dict[str, str]) -> str:
    if "session" in place:
        return f"session {place['session']}"
    return place.get("project", "everything without a phase of its own")


def _show(folder: str, session: str, as_json: bool, changed: str) -> None:
    with reading() as reader:
        loaded = Policies(reader).loaded(folder)
        found = overview.phase(reader, loaded.settings, folder, session)
        every = [
            {"project": project, "session": of, "phase": name, "at": moment(at)}
            for project, of, name, at in all_phases(reader)
        ]
    if as_json:
        say_json({"project": folder, "session": session, **found, "set": every})
        return
    if changed:
        say(f"Changed for {plain(changed)}.")
    said = "" if found["is_set"] else " (no phase is set, so the strictest applies)"
    say(f"{found['name']}{said} in {'session ' + plain(session) if session else plain(Path(folder).name)}")
    for line in meaning(found):
        say(f"  {line}")
    for each in every:
        scope = f"session {each['session']}" if each["session"] else each["project"] or "user"
        say(f"set: {each['phase']:<10} {plain(scope)}")


def meaning(found: dict[str, Any]) -> list[str]:
    """A phase in words, from its lists."""
    lists = found["profile"]
    lines = [
        f"{label:<26} {', '.join(lists[key])}"
        for key, label in (
            ("allowed", "may run, as trust allows:"),
            ("trust_gated", "asks until well trusted:"),
            ("denied", "refused:"),
        )
        if lists[key]
    ]
    rest = "decided by trust" if found["name"] == _OPEN else "refused"
    return [*lines, f"{'everything else:':<26} {rest}"]
