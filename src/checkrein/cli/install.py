"""`checkrein install | uninstall | plugin`: our hooks in an agent's settings, there and out again."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from checkrein import knocking
from checkrein.cli.opening import ask, json_option, project_path, reading
from checkrein.cli.terminal import plain, say, say_json
from checkrein.doors.hooks import install as hooks
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.errors import CheckreinError
from checkrein.hookclient import client_words
from checkrein.policies import Policies
from checkrein.runtime import door_file, read_door, write_door
from checkrein.settings.sources import state_dir
from checkrein.speakers import RegisteredClients
from checkrein.store.installations import installations
from checkrein.store.phases import phase_for


def place_options(command: Any) -> Any:
    """Whose settings."""
    for option in reversed(
        (
            click.argument("agent", type=click.Choice(AGENTS)),
            click.option(
                "--project",
                "scope",
                flag_value="project",
                default="project",
                help="The current project (the default).",
            ),
            click.option("--user", "scope", flag_value="user", help="Your own settings: every project."),
            click.option("--dry-run", is_flag=True, help="Show what would change; write nothing."),
            json_option,
        )
    ):
        command = option(command)
    return command


@click.command()
@place_options
def install(agent: str, scope: str, dry_run: bool, as_json: bool) -> None:
    """Put our hooks into an agent's settings, so that its calls are judged. Your own lines stay."""
    project, folder = _place(scope)
    with reading() as reader:
        settings = Policies(reader).loaded(folder).settings
        known = (agent, folder) in installations(reader)
        unset = phase_for(reader, folder, "") is None
    plan = hooks.plan(agent, scope, project, wait=settings.approval.timeout_seconds)
    if dry_run:
        _show(plan, as_json, dry_run=True)
        return
    # INVARIANT: only a person registers hooks; the authority is asked before anything is written.
    phase = ask("installation.add", agent=agent, folder=folder)["phase"]
    try:
        _name_the_door()
        backups = hooks.apply(plan)
    except CheckreinError:
        if not known:
            ask("installation.remove", agent=agent, folder=folder)
        raise
    _show(plan, as_json, backups=backups, phase=phase, begun=unset)


@click.command()
@place_options
def uninstall(agent: str, scope: str, dry_run: bool, as_json: bool) -> None:
    """Take our hooks out of an agent's settings. What you wrote yourself stays."""
    project, folder = _place(scope)
    plan = hooks.plan_removal(agent, scope, project)
    if dry_run:
        _show(plan, as_json, dry_run=True)
        return
    # First, so that the guard of the settings lets it happen.
    ask("installation.remove", agent=agent, folder=folder)
    _show(plan, as_json, backups=hooks.apply(plan))


@click.command()
@click.argument("folder", type=click.Path(file_okay=False))
def plugin(folder: str) -> None:
    """Write a Claude Code plugin with our hooks into a folder, for `claude --plugin-dir`."""
    from checkrein.doors.hooks.plugin import write_plugin

    if not door_file().exists():
        write_door()
    RegisteredClients(state_dir()).register(client_words())
    write_plugin(Path(folder))
    say(f"Wrote the plugin to {plain(folder)}. Try it: claude --plugin-dir {plain(folder)}")


def _name_the_door() -> None:
    """From now on hooks start the program that installed them; a server that runs keeps its socket."""
    write_door(Path(read_door().socket) if knocking.is_running() else None)
    RegisteredClients(state_dir()).register(client_words())


def _place(scope: str) -> tuple[Path, str]:
    """The project's folder, and the name the installation has in the store: empty for the user's own."""
    project = project_path(None)
    return Path(project), project if scope == "project" else ""


def _show(
    plan: hooks.Plan,
    as_json: bool,
    *,
    dry_run: bool = False,
    backups: tuple[Path, ...] = (),
    phase: str = "",
    begun: bool = False,
) -> None:
    if as_json:
        say_json(
            {
                "agent": plan.agent,
                "scope": plan.scope,
                "folder": str(plan.folder),
                "dry_run": dry_run,
                "changed": [str(change.path) for change in plan.changes],
                "diff": diff(plan),
                "backups": [str(path) for path in backups],
                "warnings": list(plan.warnings),
                "notes": list(plan.notes),
                "phase": phase or None,
                "phase_was_set": bool(phase and begun),
            }
        )
        return
    if dry_run:
        say(plain(diff(plan)) or "Nothing would change.")
    else:
        _tell(plan, backups)
    if phase:
        _tell_phase(plan, phase, begun)
    for warning in plan.warnings:
        say(f"Warning: {plain(warning)}")
    for note in plan.notes:
        say(f"Note: {plain(note)}")
    if phase:
        say(
            f"Next: start {dialect(plan.agent).title} again; `checkrein doctor {plan.agent}` proves it works."
        )


def _tell(plan: hooks.Plan, backups: tuple[Path, ...]) -> None:
    for change in plan.changes:
        done = "removed" if change.new is None else "wrote" if change.old is None else "changed"
        say(f"{done:<8} {plain(str(change.path))}")
    for backup in backups:
        say(f"{'kept':<8} {plain(str(backup))}")
    if not plan.changes:
        say("Everything is in place already." if plan.phase else "Nothing of ours was there.")


def _tell_phase(plan: hooks.Plan, phase: str, begun: bool) -> None:
    where = "this project" if plan.scope == "project" else "every project without one of its own"
    if begun:
        say(f"The phase is {phase} now, for {where}; `checkrein phase` shows what that means.")
    else:
        say(f"The phase stays {phase}.")


def diff(plan: hooks.Plan) -> str:
    """The plan as a unified diff."""
    pieces: list[str] = []
    for change in plan.changes:
        pieces += difflib.unified_diff(
            (change.old or "").splitlines(keepends=True),
            (change.new or "").splitlines(keepends=True),
            str(change.path) if change.old is not None else "/dev/null",
            str(change.path) if change.new is not None else "/dev/null",
        )
    return "".join(piece if piece.endswith("\n") else f"{piece}\n" for piece in pieces)
