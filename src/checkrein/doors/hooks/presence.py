"""Whether our hooks are in place and would run: for the doctor, and for the guard of the settings files."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.hooks import files, jsontext
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.registrations import (
    COMMAND_KEY,
    GROUPED,
    HANDLER_NAME,
    CommandFor,
    Registration,
    client_of,
    entry,
    handlers,
    registrations,
)
from checkrein.errors import ConfigError

MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
MISSING = "it is not there"
# What a person may add or change without taking anything away.
HARMLESS = ("statusMessage", "name", "description")


class Presence(msgspec.Struct, frozen=True):
    """How an agent's settings stand: events in place, changed (with why) and missing; why none would run."""

    agent: str
    scope: str
    file: Path
    complete: tuple[str, ...] = ()
    altered: dict[str, str] = {}
    missing: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not (self.altered or self.missing or self.reasons)

    @property
    def installed(self) -> bool:
        """Whether anything of ours is there at all."""
        return bool(self.complete or self.altered)


def default_command() -> CommandFor:
    """The client of this environment, knocking at this user's door."""
    from checkrein.hookclient import client_command
    from checkrein.runtime import door_file

    door = door_file()
    return lambda agent, mode, seconds: client_command(door, agent, mode, seconds)


def present(
    agent: str, scope: str, folder: Path | None = None, *, command: CommandFor | None = None
) -> Presence:
    """How our registrations stand in one of the agent's files."""
    folder = Path(folder or Path.cwd()).absolute()
    path = files.settings_file(agent, scope, folder)
    try:
        found = files.document(agent, files.text_of(path), str(path))
    except ConfigError as error:
        everything = tuple(each.event for each in registrations(agent))
        return Presence(agent, scope, path, missing=everything, reasons=(str(error),))
    states = _states(agent, found, command or default_command())
    there = any(why != MISSING for why in states.values())
    return Presence(
        agent,
        scope,
        path,
        complete=tuple(event for event, why in states.items() if not why),
        altered={event: why for event, why in states.items() if why and why != MISSING},
        missing=tuple(event for event, why in states.items() if why == MISSING),
        reasons=tuple(_reasons(agent, scope, folder, found)) if there else (),
    )


def _states(agent: str, found: dict[str, Any], command: CommandFor) -> dict[str, str]:
    """Event to why it does not do what it should; nothing where it does."""
    hooks = found.get("hooks", {})
    return {
        each.event: min(
            (_lacking(agent, each, item, command) for item in hooks.get(each.event, [])), key=_rank
        )
        if hooks.get(each.event)
        else MISSING
        for each in registrations(agent)
    }


def _rank(why: str) -> int:
    return 0 if not why else 2 if why == MISSING else 1


def _lacking(agent: str, wanted: Registration, item: Any, command: CommandFor) -> str:
    """What an item of the list lacks to be the registration."""
    for handler in handlers(agent, item):
        client = client_of(agent, handler)
        if client is None:
            continue
        line = command(agent, wanted.mode, client.seconds)
        return _difference(agent, wanted, item, handler, line, client.seconds)
    return MISSING


def _difference(
    agent: str, wanted: Registration, item: Any, handler: dict[str, Any], line: str, seconds: int
) -> str:
    key, hooks = COMMAND_KEY.get(agent, "command"), dialect(agent).hooks
    if handler.get(key) != line:
        return "its command is another one"
    timeout = handler.get(hooks.timeout_key, hooks.timeouts.get(wanted.event, hooks.default_timeout))
    if timeout <= seconds * (1000 if hooks.timeout_unit == "ms" else 1):
        return "its time limit is too short"
    expected = entry(agent, wanted, line)
    model = expected["hooks"][0] if agent in GROUPED else expected
    free = (*HARMLESS, hooks.timeout_key)
    changed = {name for name in {*model, *handler} - {*free} if model.get(name) != handler.get(name)}
    if changed:
        return f"`{min(changed)}` is not what it should be"
    if agent in GROUPED and not _as_wide(expected.get("matcher", ""), item.get("matcher", "")):
        return "its matcher is another one"
    return ""


def _as_wide(wanted: str, found: Any) -> bool:
    return found == wanted or found in ("", "*")


def switched_off(agent: str, found: dict[str, Any]) -> list[str]:
    """Settings in the file that keep hooks from running."""
    config = _part(found, "hooksConfig") if agent == "gemini-cli" else {}
    return [
        text
        for text, holds in (
            ("`disableAllHooks` is true: no hook runs.", found.get("disableAllHooks") is True),
            ("`hooksConfig.enabled` is false: no hook runs.", config.get("enabled") is False),
            (
                "`hooksConfig.disabled` names our hooks: they do not run.",
                HANDLER_NAME in _names(config.get("disabled")),
            ),
        )
        if holds
    ]


def _reasons(agent: str, scope: str, folder: Path, found: dict[str, Any]) -> list[str]:
    """Why hooks that are in place would still not run, as far as it can be seen from outside."""
    reasons = _off_anywhere(folder) if agent == "claude-code" else switched_off(agent, found)
    if agent == "gemini-cli" and scope == "project":
        reasons += switched_off(agent, loosely(files.settings_file(agent, "user")))
    if agent == "codex" and (why := codex_trusted(scope, folder)):
        reasons.append(why)
    trusts = {"gemini-cli": _gemini_trusts, "copilot-cli": _copilot_trusts}.get(agent)
    if scope == "project" and trusts and not trusts(folder):
        title = dialect(agent).title
        reasons.append(f"{title} does not trust this folder yet: open it in {title} once and trust it.")
    return reasons


def _gemini_trusts(folder: Path) -> bool:
    """Whether the project's settings count: it or a folder above is trusted, or trust is not asked for."""
    home = files.agent_home("gemini-cli")
    if _part(_part(loosely(home / "settings.json"), "security"), "folderTrust").get("enabled") is False:
        return True
    trusted = set()
    for name, level in loosely(home / "trustedFolders.json").items():
        if level in ("TRUST_FOLDER", "TRUST_PARENT"):
            trusted.add(Path(name).parent if level == "TRUST_PARENT" else Path(name))
    return any(each in trusted for each in _upwards(folder))


def _copilot_trusts(folder: Path) -> bool:
    config = loosely(files.agent_home("copilot-cli") / "config.json")
    trusted = [*_names(config.get("trustedFolders")), *_names(config.get("trusted_folders"))]
    return any(str(each) in trusted for each in _upwards(folder))


def _names(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _upwards(folder: Path) -> list[Path]:
    return [each for path in (folder, folder.resolve()) for each in (path, *path.parents)]


def _off_anywhere(folder: Path) -> list[str]:
    """Any file of Claude Code that switches all hooks off, or ours."""
    own = (
        files.settings_file("claude-code", "user"),
        folder / ".claude" / "settings.json",
        folder / ".claude" / "settings.local.json",
    )
    reasons = []
    for path in dict.fromkeys((*own, *MANAGED)):
        value = loosely(path)
        reasons += [f"{path}: {why}" for why in switched_off("claude-code", value)]
        if path in MANAGED and value.get("allowManagedHooksOnly") is True:
            reasons.append(f"{path}: `allowManagedHooksOnly` is true: only hooks of that file run.")
    return reasons


def loosely(path: Path) -> dict[str, Any]:
    """What a file says that is not ours to judge; nothing when it cannot be read."""
    try:
        value = jsontext.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, ConfigError):
        return {}
    return value if isinstance(value, dict) else {}


def still_guarded(
    agent: str,
    file: Path,
    text: str,
    *,
    installed: bool | None = None,
    command: CommandFor | None = None,
) -> str:
    """Why the file, with this text, would take our hooks out; nothing when it would not.

    `installed` says whether we belong in this very file. Without it, a file that is not the user's own
    may lack us when the user's own has us.
    """
    command = command or default_command()
    ours = file.name == Path(dialect(agent).hooks.project).name
    try:
        found = files.document(agent, text, str(file))
    except ConfigError as error:
        return str(error) if ours and _belongs(agent, file, installed, command) else ""
    if off := switched_off(agent, found):
        return f"{file}: {off[0]}"
    if not ours or not _belongs(agent, file, installed, command):
        return ""
    for event, why in _states(agent, found, command).items():
        if why:
            return f"{file}: our {event} hook: {why}."
    return ""


def _belongs(agent: str, file: Path, installed: bool | None, command: CommandFor) -> bool:
    if installed is not None:
        return installed
    own = files.settings_file(agent, "user")
    return file.resolve() == own.resolve() or not present(agent, "user", command=command).complete


# Codex keeps in its config.toml which hooks a person has looked at, by a hash of what they run.


def codex_trusted(scope: str, folder: Path | None = None) -> str:
    """Why Codex would skip our hooks; nothing when a person has trusted them all."""
    folder = Path(folder or Path.cwd()).absolute()
    path = files.settings_file("codex", scope, folder)
    own = files.agent_home("codex") / "config.toml"
    config = _toml(own)
    # The switch in a project's own file turns the user's hooks off there too.
    for file in (own, folder / ".codex" / "config.toml"):
        if _part(_toml(file), "features").get("hooks") is False:
            return f"{file}: `features.hooks` is false: no hook runs."
    if scope == "project" and not _codex_project(config, folder):
        return "Codex does not trust this folder yet: open it in Codex once and trust it."
    state = _part(_part(config, "hooks"), "state")
    for event, keys in _codex_handlers(path).items():
        for key, trusted in keys:
            known = _part(state, key)
            if known.get("enabled") is False:
                return f"Our {event} hook is switched off in Codex: run `/hooks` in Codex."
            if known.get("trusted_hash") != trusted:
                return f"Codex skips our {event} hook until you trust it: run `/hooks` in Codex."
    return ""


def codex_unseen(folder: Path | None = None) -> str:
    """What Codex's model can do without a hook hearing of it; nothing when it cannot.

    It may start a program in a terminal and type into it: into a shell, or a pager that runs `!commands`.
    """
    folder = Path(folder or Path.cwd()).absolute()
    own = files.agent_home("codex") / "config.toml"
    switches = [_part(_toml(file), "features") for file in (own, folder / ".codex" / "config.toml")]
    mine, theirs = (each.get("unified_exec_tty") for each in switches)
    if mine is False and theirs in (None, False):
        return ""
    return (
        "Codex lets its model type into programs that run, and no hook is told: "
        f"put `unified_exec_tty = false` under `[features]` in {own}."
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _part(table: dict[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _codex_project(config: dict[str, Any], folder: Path) -> bool:
    projects = _part(config, "projects")
    return any(_part(projects, str(each)).get("trust_level") == "trusted" for each in _upwards(folder))


def _codex_handlers(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Event to (key, hash) of our handlers, as Codex names and hashes them."""
    try:
        hooks = files.document("codex", files.text_of(path)).get("hooks", {})
    except ConfigError:
        return {}
    return {
        event: [
            (f"{os.path.realpath(path)}:{_snake(event)}:{index}:{inner}", _codex_hash(event, item, handler))
            for index, item in enumerate(items)
            for inner, handler in enumerate(handlers("codex", item))
            if client_of("codex", handler)
        ]
        for event, items in hooks.items()
    }


def _snake(event: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")


def _codex_hash(event: str, item: dict[str, Any], handler: dict[str, Any]) -> str:
    hook = {
        "type": "command",
        "command": handler["command"],
        "timeout": max(1, handler.get("timeout", 600)),
        "async": False,
    }
    if isinstance(handler.get("statusMessage"), str):
        hook["statusMessage"] = handler["statusMessage"]
    identity = {"event_name": _snake(event), "hooks": [hook]}
    if isinstance(item.get("matcher"), str):
        identity["matcher"] = item["matcher"]
    shown = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(shown.encode()).hexdigest()}"
