"""Puts our hooks into an agent's settings and takes them out again; everybody else's lines stay as they are.

`plan` and `plan_removal` only read and say what would change; `apply` is the one that writes.
"""

from __future__ import annotations

import itertools
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.hooks import files, jsontext
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.presence import (
    Presence,
    codex_trusted,
    codex_unseen,
    default_command,
    loosely,
    present,
    still_guarded,
    switched_off,
)
from checkrein.doors.hooks.registrations import (
    GROUPED,
    PHASES,
    VERSIONED,
    CommandFor,
    client_of,
    entries,
    handlers,
    recognise,
    registrations,
    status_line,
)
from checkrein.errors import ConfigError, InputError

__all__ = [
    "Change",
    "Plan",
    "Presence",
    "apply",
    "codex_trusted",
    "plan",
    "plan_removal",
    "present",
    "still_guarded",
]

BACKUP = ".checkrein-backup-"
SKILLS = Path(__file__).parent / "skills"
SKILL_MARK = "<!-- installed by checkrein -->"
STATUS = "statusLine"
# A line that stands in two files of these agents is run once; the others run both.
RUN_ONCE = ("claude-code", "gemini-cli")


class Change(msgspec.Struct, frozen=True):
    """One file: what it holds, and what it is to hold; None where there is no such file."""

    path: Path
    old: str | None
    new: str | None


class Plan(msgspec.Struct, frozen=True):
    """What would be written, and what the person should know before and after."""

    agent: str
    scope: str
    folder: Path
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # The phase that holds from now on where none was set; empty when hooks are taken out.
    phase: str = ""


def plan(
    agent: str,
    scope: str,
    folder: Path | None = None,
    *,
    command: CommandFor | None = None,
    wait: int = 300,
) -> Plan:
    """What installing would change; nothing when everything is in place already."""
    folder, path = _place(agent, scope, folder)
    command = command or default_command()
    old = files.text_of(path)
    found = files.document(agent, old, str(path))
    new = _installed(agent, old or "", entries(agent, command, wait))
    warnings = [*switched_off(agent, found), *_strangers(agent, found), *_twice(agent, scope, command)]
    if agent == "claude-code":
        new, told = _with_status(new, scope, command)
        warnings += told
    # INVARIANT: what we write is a file the agent reads.
    files.document(agent, new, str(path))
    skills, kept = _skills(agent, path.parent)
    changes = _changed([Change(path, old, new), *skills])
    return Plan(
        agent=agent,
        scope=scope,
        folder=folder,
        changes=changes,
        notes=tuple(_notes(agent, scope, folder, path)),
        warnings=(*warnings, *kept),
        phase="building",
    )


def plan_removal(agent: str, scope: str, folder: Path | None = None) -> Plan:
    """What taking our hooks out would change."""
    folder, path = _place(agent, scope, folder)
    old = files.text_of(path)
    found = files.document(agent, old, str(path))
    new = None if old is None else _before_us(agent, path, old, found)
    skills = [
        Change(skill, text, None)
        for skill in _skill_files(agent, path.parent)
        if SKILL_MARK in (text := files.text_of(skill) or "")
    ]
    return Plan(agent, scope, folder, _changed([Change(path, old, new), *skills]))


def apply(plan: Plan) -> tuple[Path, ...]:
    """Write the plan; the backups that were made."""
    for change in plan.changes:
        if files.text_of(change.path) != change.old:
            raise InputError(
                f"{change.path} has changed meanwhile.", remedy="Nothing was written. Try again."
            )
    stop = plan.folder if plan.scope == "project" else files.agent_home(plan.agent)
    try:
        return tuple(backup for change in plan.changes if (backup := _carry_out(change, plan.scope, stop)))
    except OSError as error:
        raise ConfigError(
            str(error.filename or plan.folder),
            None,
            f"cannot be written ({error.strerror}).",
            "Make it writable for you, then try again.",
        ) from error


def _carry_out(change: Change, scope: str, stop: Path) -> Path | None:
    mode = 0o644 if scope == "project" else 0o600
    backup = None
    if change.old is not None and (change.new is not None or _edited_skill(change)):
        backup = _free_name(change.path)
        files.write(backup, change.old, stat.S_IMODE(change.path.stat().st_mode))
    if change.new is None:
        files.remove(change.path, stop)
    else:
        files.write(change.path, change.new, mode)
    return backup


def _edited_skill(change: Change) -> bool:
    packaged = SKILLS / change.path.parent.name / change.path.name
    return packaged.is_file() and change.old != packaged.read_text(encoding="utf-8")


def _free_name(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name = path.with_name(f"{path.name}{BACKUP}{stamp}")
    more = (path.with_name(f"{name.name}-{n}") for n in itertools.count(1))
    return next(each for each in itertools.chain([name], more) if not each.exists())


def _place(agent: str, scope: str, folder: Path | None) -> tuple[Path, Path]:
    if scope not in ("user", "project"):
        raise InputError(f"{scope!r} is neither user nor project.", remedy="Choose one of the two.")
    folder = Path(folder or Path.cwd()).absolute()
    return folder, files.settings_file(agent, scope, folder)


def _changed(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.old != change.new)


# Our entries in the text


def _installed(agent: str, text: str, wanted: dict[str, dict[str, Any]]) -> str:
    """The text with exactly the wanted entries of ours, each in the place it already has."""
    if agent in VERSIONED and "version" not in _value(text):
        text = jsontext.set_member(text, ("version",), 1)
    for event in list(_value(text).get("hooks", {})):
        if event not in wanted:
            text = _without_ours(agent, text, event)
    for event, entry in wanted.items():
        text = _with_entry(agent, text, event, entry)
    return text


def _with_entry(agent: str, text: str, event: str, entry: dict[str, Any]) -> str:
    places = list(_ours(agent, _items(text, event)))
    whole = [place[0] for place in places if len(place) == 1]
    if not whole:
        return jsontext.insert_item(_without_ours(agent, text, event, keep=True), ("hooks", event), entry)
    first = whole[0]
    for place in reversed(places):
        if place != (first,):
            text = _cut(text, event, place)
    if _items(text, event)[first] != entry:
        text = jsontext.set_member(text, ("hooks", event, first), entry)
    return text


def _without_ours(agent: str, text: str, event: str, *, keep: bool = False) -> str:
    """Without our entries for the event; lists and objects that are empty then go too."""
    places = list(_ours(agent, _items(text, event)))
    for place in reversed(places):
        text = _cut(text, event, place)
    if places and not keep and not _items(text, event):
        text = jsontext.remove_item(text, ("hooks", event))
        if not _value(text)["hooks"]:
            text = jsontext.remove_item(text, ("hooks",))
    return text


def _cut(text: str, event: str, place: tuple[int, ...]) -> str:
    path: jsontext.Path = ("hooks", event, place[0])
    return jsontext.remove_item(text, path if len(place) == 1 else (*path, "hooks", place[1]))


def _ours(agent: str, items: list[Any]) -> Iterator[tuple[int, ...]]:
    """Where we are in an event's list: (item,) where it is ours alone, (item, handler) where it is shared."""
    for index, item in enumerate(items):
        mine = [client_of(agent, handler) is not None for handler in handlers(agent, item)]
        if mine and all(mine):
            yield (index,)
        elif agent in GROUPED:
            yield from ((index, inner) for inner, own in enumerate(mine) if own)


def _value(text: str) -> dict[str, Any]:
    value = jsontext.parse(text) if text.strip(" \t\r\n" + jsontext.MARK) else {}
    return value if isinstance(value, dict) else {}


def _items(text: str, event: str) -> list[Any]:
    return _listed(_value(text).get("hooks", {}).get(event))


def _listed(items: Any) -> list[Any]:
    return items if isinstance(items, list) else []


# Back to what was there before us


def _before_us(agent: str, path: Path, text: str, found: dict[str, Any]) -> str | None:
    """The text without us: exactly what it was where only we changed it since; None for a file we made."""
    mine, own_status = _own_entries(agent, found), _is_ours(found.get(STATUS))
    if not own_status and not any(
        True for items in found.get("hooks", {}).values() for _ in _ours(agent, _listed(items))
    ):
        return text
    for earlier in (*_backups(agent, path), None):
        again = _installed(agent, earlier or "", mine)
        if own_status and STATUS not in _value(earlier or ""):
            again = jsontext.set_member(again, (STATUS,), found[STATUS])
        if again == text:
            return earlier
    for event in list(found.get("hooks", {})):
        text = _without_ours(agent, text, event)
    return jsontext.remove_item(text, (STATUS,)) if own_status else text


def _own_entries(agent: str, found: dict[str, Any]) -> dict[str, Any]:
    """Our entries as they stand in the file, in the order they were written."""
    hooks = found.get("hooks", {})
    order = [each.event for each in registrations(agent)]
    events = sorted(hooks, key=lambda event: order.index(event) if event in order else len(order))
    mine = {}
    for event in events:
        whole = [place for place in _ours(agent, _listed(hooks[event])) if len(place) == 1]
        if whole:
            mine[event] = hooks[event][whole[0][0]]
    return mine


def _backups(agent: str, path: Path) -> list[str]:
    """What the file held before us, the newest first."""
    found = sorted(path.parent.glob(f"{path.name}{BACKUP}*"), key=lambda each: each.name, reverse=True)
    texts = []
    for backup in found:
        try:
            text = files.text_of(backup) or ""
            if not _own_entries(agent, files.document(agent, text)):
                texts.append(text)
        except ConfigError:
            continue
    return texts


# Status line and phase commands of Claude Code


def _is_ours(line: Any) -> bool:
    command = line.get("command") if isinstance(line, dict) else None
    return isinstance(command, str) and recognise(command) is not None


def _with_status(text: str, scope: str, command: CommandFor) -> tuple[str, list[str]]:
    """Our status line where the user has none; a person's own line is never replaced."""
    line = _value(text).get(STATUS)
    if line is None and scope == "project":
        line = loosely(files.settings_file("claude-code", "user")).get(STATUS)
        if _is_ours(line):
            return text, []
    if line is not None and not _is_ours(line):
        return text, ["You have a status line of your own; it stays, and ours is not shown."]
    wanted = status_line(command)
    return (text if line == wanted else jsontext.set_member(text, (STATUS,), wanted)), []


def _skill_files(agent: str, folder: Path) -> list[Path]:
    return [folder / "skills" / name / "SKILL.md" for name in PHASES] if agent == "claude-code" else []


def _skills(agent: str, folder: Path) -> tuple[list[Change], list[str]]:
    changes, kept = [], []
    for path in _skill_files(agent, folder):
        old = files.text_of(path)
        name = path.parent.name
        if old is not None and SKILL_MARK not in old:
            kept.append(
                f"{path} is a skill of your own; it stays, and `/{name}` switches the phase all the same."
            )
        else:
            changes.append(Change(path, old, (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")))
    return changes, kept


# What a person should know


def _strangers(agent: str, found: dict[str, Any]) -> list[str]:
    """Lines that run our client in a way that is not ours: they stay, and somebody should look at them."""
    return [
        f"The {event} hook `{command[:80]}` runs our client in a way we do not know; it was left alone."
        for event, items in found.get("hooks", {}).items()
        for item in _listed(items)
        for handler in handlers(agent, item)
        for command in [handler.get("command") or handler.get("bash")]
        if isinstance(command, str) and "checkrein-hook" in command and recognise(command) is None
    ]


def _twice(agent: str, scope: str, command: CommandFor) -> list[str]:
    """Whether our hooks would run twice for every call."""
    if agent in RUN_ONCE or scope == "user" or not present(agent, "user", command=command).installed:
        return []
    own = files.settings_file(agent, "user")
    return [f"Our hooks are in {own} too: every call here would be judged twice."]


def _notes(agent: str, scope: str, folder: Path, path: Path) -> list[str]:
    notes = []
    if agent == "codex":
        notes.append(
            "Codex skips new and changed hooks without a word until you trust them: run `/hooks` in Codex."
        )
        notes += [gap] if (gap := codex_unseen(folder)) else []
    if agent in ("copilot-cli", "gemini-cli") and scope == "project":
        notes.append(f"{dialect(agent).title} runs a project's hooks only in folders you trust.")
    if dialect(agent).experimental:
        notes.append(f"{dialect(agent).title} is supported as its documentation says; we have not run it.")
    if scope == "project" and any((each / ".git").exists() for each in (folder, *folder.parents)):
        notes.append(
            f"Keep {path.relative_to(folder)} out of version control: it names programs of this computer, "
            "and whoever lacks them could run no tool."
        )
    return notes
