"""Placeholders of editors and bundles in an entry, replaced by what they stand for or by secrets to set.

`settings.server_imports` calls it; `needs` gathers the names of the secrets a person has to set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from checkrein.errors import ConfigError
from checkrein.settings.import_secrets import secret_name
from checkrein.settings.import_sources import Found

_OF_AN_EDITOR = re.compile(
    r"\$\{(input:[^}]*|userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|/)\}"
)
_OF_A_BUNDLE = re.compile(r"\$\{(?:(__dirname|HOME|pathSeparator|/)|user_config\.([^}]+))\}")


def filled(raw: dict[str, Any], name: str, each: Found, home: str, needs: list[str]) -> dict[str, Any]:
    """The entry with that program's own placeholders replaced by ours."""
    if each.bundle is not None:
        return _from_bundle(raw, name, each, home, needs)

    def one(text: str) -> str:
        return _OF_AN_EDITOR.sub(lambda found: _editors(found[1], name, each, home, needs), text)

    return {key: _everywhere(value, one) for key, value in raw.items()}


def _everywhere(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_everywhere(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _everywhere(item, change) for key, item in value.items()}
    return value


def _editors(word: str, name: str, each: Found, home: str, needs: list[str]) -> str:
    if word.startswith("input:"):
        # The editor asks for it and keeps it to itself: here a person sets it once.
        needs.append(secret_name(name, word.removeprefix("input:")))
        return f"${{keyring:{needs[-1]}}}"
    if word == "userHome":
        return home
    if word in ("pathSeparator", "/"):
        return "/"
    if not each.folder:
        raise ConfigError(
            name, None, f"needs ${{{word}}}, and this file is no project's.", "Write the folder."
        )
    return each.folder if word == "workspaceFolder" else PurePath(each.folder).name


def _from_bundle(raw: dict[str, Any], name: str, each: Found, home: str, needs: list[str]) -> dict[str, Any]:
    """A bundle's entry, with what its user must choose as defaults or as secrets to set."""
    asked = (each.bundle or {}).get("user_config")
    choices: dict[str, Any] = asked if isinstance(asked, dict) else {}

    def one(text: str) -> str:
        return _OF_A_BUNDLE.sub(lambda found: _bundles(found, name, each, home, choices, needs), text)

    args: list[Any] = []
    listed = raw.get("args")
    for item in listed if isinstance(listed, list) else []:
        whole = _OF_A_BUNDLE.fullmatch(item) if isinstance(item, str) else None
        choice = choices.get(whole[2], {}) if whole and whole[2] else {}
        several = choice.get("default") if isinstance(choice, dict) else None
        args += (
            [one(str(part)) for part in several] if isinstance(several, list) else [_everywhere(item, one)]
        )
    return {key: args if key == "args" else _everywhere(value, one) for key, value in raw.items()}


def _bundles(
    found: re.Match[str], name: str, each: Found, home: str, choices: dict[str, Any], needs: list[str]
) -> str:
    fixed = {"__dirname": each.folder, "HOME": home, "pathSeparator": "/", "/": "/"}
    if found[1]:
        return fixed[found[1]]
    choice = choices.get(found[2])
    default = choice.get("default") if isinstance(choice, dict) and not choice.get("sensitive") else None
    if isinstance(default, bool | int | float | str):
        return default if isinstance(default, str) else json.dumps(default)
    needs.append(secret_name(name, found[2]))
    return f"${{keyring:{needs[-1]}}}"
