"""Finds and reads the settings files, in order: built-in, user, project, command line.

A file that cannot be used becomes a fault, and every verdict is blocked until it is fixed.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkrein.errors import CheckreinError, ConfigError, InputError
from checkrein.settings import USER_ONLY, Settings
from checkrein.settings.check import apply
from checkrein.settings.reading import read
from checkrein.settings.tighten import tighten

PROJECT_FILE = "checkrein.toml"
# An agent can write the project's file: reading it must not take so long that its call is not judged in time.
MOST_DOTS_IN_A_LINE = 1000
Accepted = Callable[[str, str], bool]


class Loaded(msgspec.Struct, frozen=True):
    """Settings in force for a project, what was ignored, and the fault that blocks everything, if any."""

    settings: Settings
    project_rules: tuple[dict[str, Any], ...] = ()
    project_commands: dict[str, Any] = {}
    notices: tuple[str, ...] = ()
    fault: str = ""
    error: CheckreinError | None = None


def nobody_accepted(_path: str, _sha: str) -> bool:
    return False


def state_dir() -> Path:
    return _xdg("XDG_STATE_HOME", ".local/state")


def config_dir() -> Path:
    return _xdg("XDG_CONFIG_HOME", ".config")


def user_file() -> Path:
    return config_dir() / "config.toml"


def _xdg(variable: str, default: str) -> Path:
    given = os.environ.get(variable, "")
    # The XDG rules: a relative path is invalid and must be ignored.
    base = Path(given) if given.startswith("/") else Path.home() / default
    return base / "checkrein"


def load(project: str = "", *, overrides: Sequence[str] = (), accepted: Accepted = nobody_accepted) -> Loaded:
    """The settings for calls of `project`; never raises, a broken file is in `fault`."""
    settings = Settings()
    try:
        settings = _layer(settings, user_file())
        # A project that is no folder (`default`) has no file.
        path = Path(project) / PROJECT_FILE if project.startswith("/") else None
        loaded = _with_project(settings, path, accepted)
        return msgspec.structs.replace(loaded, settings=with_overrides(loaded.settings, overrides))
    except CheckreinError as error:
        return Loaded(settings, fault=str(error), error=error)


def _layer(settings: Settings, path: Path) -> Settings:
    content = read(path)
    return settings if content is None else apply(settings, parse(content, str(path)), str(path))


def _with_project(settings: Settings, path: Path | None, accepted: Accepted) -> Loaded:
    content = read(path) if path else None
    if path is None or content is None:
        return Loaded(settings)
    wanted = apply(settings, parse(content, str(path)), str(path))
    own = {name: getattr(settings, name) for name in USER_ONLY}
    notices = tuple(
        f"{path}: [{name}] ignored; only your own file sets it"
        for name, mine in own.items()
        if getattr(wanted, name) != mine
    )
    # INVARIANT: a project never says where a person is told of its questions.
    wanted = msgspec.structs.replace(wanted, **own)
    if accepted(str(path), content_hash(content)):
        return Loaded(wanted, notices=notices)
    tightened = tighten(settings, wanted)
    notices += tuple(f"{path}: {notice} until `checkrein policy accept`" for notice in tightened.notices)
    return Loaded(tightened.settings, tightened.rules, tightened.commands, notices)


def with_overrides(settings: Settings, overrides: Sequence[str]) -> Settings:
    """`--set trust.hibernation_days=7`: the value is TOML, a bare word is text."""
    for text in overrides:
        key, mark, value = text.partition("=")
        if not mark or not key.strip():
            raise InputError(
                f"--set {text!r} is not KEY=VALUE.", remedy="Example: --set trust.hibernation_days=7"
            )
        settings = apply(settings, _assignment(key.strip(), value.strip()), "--set")
    return settings


def _assignment(key: str, value: str) -> dict[str, Any]:
    for attempt in (value, f'"{value}"'):
        try:
            return tomllib.loads(f"{key} = {attempt}")
        except (ValueError, RecursionError):
            continue
    raise InputError(f"--set {key}={value} cannot be read.", remedy="Write the value as in a TOML file.")


def parse(content: bytes, source: str) -> dict[str, Any]:
    try:
        # The parser takes quadratic time for a key of many parts.
        if any(line.count(b".") > MOST_DOTS_IN_A_LINE for line in content.splitlines()):
            raise ValueError(f"a line holds more than {MOST_DOTS_IN_A_LINE} dots")
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "(whole file)",
            None,
            f"is not valid TOML: {error}.",
            "Fix it; `checkrein config check` shows when it is good.",
            source=source,
        ) from None


def content_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
