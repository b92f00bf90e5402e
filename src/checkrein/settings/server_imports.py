"""Servers in other programs' files, in our words: where such files lie, and what becomes of each server.

`cli.servers_import` reads the files and has the authority add what is found. Nothing here reads or writes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Literal

import msgspec

from checkrein.errors import ConfigError
from checkrein.settings import Settings, oauth
from checkrein.settings.check import apply
from checkrein.settings.secrets import has_reference
from checkrein.settings.servers import KEYS, OURS, ServerSpec, check_name, entry, server_spec

State = Literal["new", "same", "ours", "clash", "broken"]
IsSecret = Callable[[str, str], bool]
SOURCES = ("claude-desktop", "claude-code", "cursor", "vscode", "codemode-bridge")
# Other programs' words for what we have, too.
_RENAMED = {"serverUrl": "url", "httpUrl": "url", "environment": "env"}
_OAUTH_RENAMED = {"CLIENT_ID": "clientId", "CLIENT_SECRET": "clientSecret"}
_OAUTH_WORDS = (*oauth.KEYS, "scopes", "callbackPort")
_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+|_{2,}")
_BAD_IN_SECRET = re.compile(r"[^A-Za-z0-9_.-]+")
_OF_AN_EDITOR = re.compile(
    r"\$\{(input:[^}]*|userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|/)\}"
)
_OF_A_BUNDLE = re.compile(r"\$\{(?:(__dirname|HOME|pathSeparator|/)|user_config\.([^}]+))\}")
# A time from here on can only have been meant in thousandths of a second.
_MILLISECONDS = 1_000


class Found(msgspec.Struct, frozen=True):
    """A server as another program's file has it; `folder` is the project it belongs to."""

    name: str
    raw: Any
    where: str
    folder: str = ""
    bundle: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Found({self.name!r}, {self.where!r})"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of it: its entry, the values for the secret store, and what a person must know."""

    name: str
    was: str
    where: str
    state: State
    entry: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Item({self.name!r}, {self.state!r})"

    def shown(self) -> dict[str, Any]:
        """Fit to be read: of variables and headers only what are references."""
        hidden: dict[str, Any] = {
            key: {name: value if has_reference(value) else "(set)" for name, value in self.entry[key].items()}
            for key in ("env", "headers")
            if key in self.entry
        }
        if "clientSecret" in (given := _object(self.entry.get("oauth"))):
            secret = given["clientSecret"]
            hidden["oauth"] = {**given, "clientSecret": secret if has_reference(secret) else "(set)"}
        return {
            "name": self.name,
            "was": self.was,
            "from": self.where,
            "state": self.state,
            "entry": {**self.entry, **hidden},
            "secrets": sorted(self.secrets),
            "needs": list(self.needs),
            "notes": list(self.notes),
        }


def places(source: str, home: Path, project: Path) -> list[Path]:
    """The files a program keeps its servers in, the user's own first."""
    mac = sys.platform == "darwin"
    support = home / "Library/Application Support" if mac else home / ".config"
    return {
        "claude-desktop": [support / "Claude/claude_desktop_config.json"],
        "claude-code": [home / ".claude.json", project / ".mcp.json"],
        "cursor": [home / ".cursor/mcp.json", project / ".cursor/mcp.json"],
        "vscode": [support / "Code/User/mcp.json", project / ".vscode/mcp.json"],
        "codemode-bridge": [
            home / ".config/codemode-bridge/mcp.json",
            *([support / "codemode-bridge/mcp.json"] if mac else []),
        ],
    }[source]


def found_in(document: Any, path: Path) -> list[Found]:
    """Every server in a file of any of these programs."""
    if not isinstance(document, dict):
        raise ConfigError("(whole file)", None, "is not an object.", "Name another file.", source=str(path))
    where, folder = str(path), _project_of(path)
    manifest = document.get("server")
    if isinstance(manifest, dict) and isinstance(manifest.get("mcp_config"), dict):
        name = str(document.get("name", path.parent.name))
        return [Found(name, _for_this_system(manifest["mcp_config"]), where, str(path.parent), document)]
    found = [Found(name, raw, where, folder) for name, raw in _servers(document)]
    projects = document.get("projects")
    for folder, each in projects.items() if isinstance(projects, dict) else ():
        if isinstance(each, dict):
            found += [Found(name, raw, f"{where} ({folder})", folder) for name, raw in _servers(each)]
    return found


def _for_this_system(raw: dict[str, Any]) -> dict[str, Any]:
    overrides = raw.get("platform_overrides")
    own = overrides.get(sys.platform) if isinstance(overrides, dict) else None
    rest = {key: value for key, value in raw.items() if key != "platform_overrides"}
    return {**rest, **own} if isinstance(own, dict) else rest


def _servers(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    inside = document.get("mcp")
    for table in (document, inside if isinstance(inside, dict) else {}):
        for key in ("mcpServers", "servers"):
            listed = table.get(key)
            if isinstance(listed, dict):
                yield from listed.items()


def profiles_in(document: Any, source: str) -> str:
    """The `evaluation` section of a codemode-bridge file as text for config.toml; "" where there is none."""
    if not isinstance(document, dict) or "evaluation" not in document:
        return ""
    settings = apply(Settings(), {"evaluation": document["evaluation"]}, source)
    lines: list[str] = ["[evaluation]", "enabled = true", ""] if settings.evaluation.enabled else []
    for name, profile in settings.profiles.items():
        lines.append(f"[profiles.{name}]")
        plain = type(profile)()
        written = {key: getattr(profile, key) for key in profile.__struct_fields__}
        lines += [f"{key} = {_toml(each)}" for key, each in written.items() if each != getattr(plain, key)]
        lines.append("")
    if settings.doors["eval"].profile:
        lines += ["[doors.eval]", f"profile = {_toml(settings.doors['eval'].profile)}", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def plan(
    found: list[Found],
    existing: Mapping[str, ServerSpec],
    *,
    home: str,
    is_secret: IsSecret,
    rename: bool = False,
) -> list[Item]:
    """What would become of each; with `rename`, a name that is taken gets a number."""
    made: list[Item] = []
    taken = dict(existing)
    for each in found:
        item = _item(each, taken, home, is_secret, rename)
        made.append(item)
        if item.state == "new":
            taken[item.name] = server_spec(item.name, item.entry)
    return made


def _item(each: Found, taken: dict[str, ServerSpec], home: str, is_secret: IsSecret, rename: bool) -> Item:
    base = Item(name=plain_name(each.name), was=each.name, where=each.where, state="broken")
    if is_ours(each.name, each.raw):
        return _as(base, state="ours", notes=("It is our own entry.",))
    try:
        check_name(base.name)
        raw, notes = _in_our_words(each.raw)
        name = base.name if not rename else _free(base.name, raw, each, taken, home, is_secret)
        spec, secrets, needs = _made(name, raw, each, home, is_secret)
    except ConfigError as error:
        return _as(base, notes=(str(error),))
    if name != each.name:
        notes.append(f"It is called {name} here.")
    item = _as(base, name=name, entry=entry(spec), secrets=secrets, needs=needs, notes=tuple(notes))
    other = next((known for known in taken.values() if known.name.casefold() == name.casefold()), None)
    if other is None:
        return _as(item, state="new")
    if other.fingerprint == spec.fingerprint:
        return _as(item, state="same", secrets={}, needs=(), notes=("It is there already.",))
    why = "Another server has this name; --rename gives it a new one."
    return _as(item, state="clash", notes=(*item.notes, why))


def _as(item: Item, **changes: Any) -> Item:
    return msgspec.structs.replace(item, **changes)


def _free(
    name: str, raw: dict[str, Any], each: Found, taken: dict[str, ServerSpec], home: str, is_secret: IsSecret
) -> str:
    """The name, or the first numbered one that is free or belongs to this very server."""
    known = {spec.name.casefold(): spec for spec in taken.values()}
    for number in range(1, len(known) + 2):
        tried = name if number == 1 else f"{name[: 31 - len(str(number))]}-{number}"
        other = known.get(tried.casefold())
        if other is None or other.fingerprint == _made(tried, raw, each, home, is_secret)[0].fingerprint:
            return tried
    raise AssertionError("one more name than there are servers is always free")  # pragma: no cover


def _made(
    name: str, raw: dict[str, Any], each: Found, home: str, is_secret: IsSecret
) -> tuple[ServerSpec, dict[str, str], tuple[str, ...]]:
    needs: list[str] = []
    filled = _filled(raw, name, each, home, needs)
    if each.folder and each.bundle is None and "command" in filled:
        # A project's own server is started in the project there, and may rely on it.
        filled.setdefault("cwd", each.folder)
    secrets: dict[str, str] = {}
    for key in ("env", "headers"):
        if isinstance(filled.get(key), dict):
            filled[key] = _without_secrets(filled[key], name, is_secret, secrets)
    secret = _object(filled.get("oauth")).get("clientSecret")
    if isinstance(secret, str) and secret and not has_reference(secret):
        kept = _moved(_secret_name(name, "clientSecret"), secret, secrets)
        filled["oauth"] = {**filled["oauth"], "clientSecret": kept}
    if isinstance(filled.get("args"), list):
        filled["args"] = _arguments(filled["args"], name, is_secret, secrets)
    return server_spec(name, filled), secrets, tuple(dict.fromkeys(needs))


def plain_name(name: str) -> str:
    """The nearest name that can be one of ours."""
    text = _BAD_IN_NAME.sub(lambda found: "_" if found[0].startswith("_") else "-", name)
    return text.strip("-_")[:32].strip("-_")


def is_ours(name: str, raw: Any) -> bool:
    """Whether it leads back to ourselves, which would be a circle."""
    if name.casefold() == OURS:
        return True
    given = raw if isinstance(raw, dict) else {}
    args = given.get("args")
    words = [given.get("command"), *(args if isinstance(args, list) else [])]
    texts = [each for each in words if isinstance(each, str)]
    names = [PurePath(each).name for each in texts]
    inside = any("hookclient/client.py" in each for each in texts)
    return inside or "checkrein-hook" in names or (OURS in names and "mcp" in texts)


def _in_our_words(raw: Any) -> tuple[dict[str, Any], list[str]]:
    """The entry with our keys, and what of it we have no place for."""
    if not isinstance(raw, dict):
        raise ConfigError("(entry)", None, "is not an object.", "Correct it there.")
    given: dict[str, Any] = {
        _RENAMED.get(str(key), str(key)): value
        for key, value in raw.items()
        if value not in (None, "", [], {})
    }
    notes: list[str] = []
    if given.pop("disabled", False) is True:
        given["enabled"] = False
        notes.append("It is switched off there, and here.")
    if given.get("type") == "local":
        del given["type"]
    if isinstance(given.get("command"), list):
        given["command"], *more = given["command"]
        listed = given.get("args")
        given["args"] = [*more, *(listed if isinstance(listed, list) else [])]
    if isinstance(given.get("env"), dict):
        given["env"] = {key: _text(value) for key, value in given["env"].items()}
    time = given.get("timeout")
    if isinstance(time, int | float) and time >= _MILLISECONDS:
        given["timeout"] = time / 1000
    given.pop("trusted", None)
    _take_sign_in(given, notes)
    left = sorted(key for key in given if key not in KEYS)
    if left:
        notes.append(f"Not taken over: {', '.join(left)}.")
    return {key: value for key, value in given.items() if key in KEYS}, notes


def _take_sign_in(given: dict[str, Any], notes: list[str]) -> None:
    """What the entry says of signing in, under one name and without what we have no place for."""
    found = given.pop("auth") if isinstance(given.get("auth"), dict) else given.get("oauth")
    if not isinstance(found, dict):
        return
    words = {_OAUTH_RENAMED.get(str(key), str(key)): value for key, value in found.items()}
    on = words.pop("enabled", True) is not False
    left = sorted(key for key in words if key not in _OAUTH_WORDS)
    if left:
        notes.append(f"Not taken over: {', '.join(f'oauth.{key}' for key in left)}.")
    given["oauth"] = on and ({key: words[key] for key in words if key in _OAUTH_WORDS} or True)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return value


def _filled(raw: dict[str, Any], name: str, each: Found, home: str, needs: list[str]) -> dict[str, Any]:
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
        needs.append(_secret_name(name, word.removeprefix("input:")))
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
    needs.append(_secret_name(name, found[2]))
    return f"${{keyring:{needs[-1]}}}"


def _without_secrets(
    values: dict[str, Any], name: str, is_secret: IsSecret, secrets: dict[str, str]
) -> dict[str, Any]:
    """The values with every plain secret replaced by a reference to where it will be kept."""
    kept = dict(values)
    for key, value in values.items():
        if isinstance(value, str) and not has_reference(value) and is_secret(key, value):
            kept[key] = _moved(_secret_name(name, key), value, secrets)
    return kept


def _arguments(args: list[Any], name: str, is_secret: IsSecret, secrets: dict[str, str]) -> list[Any]:
    kept = list(args)
    for at, value in enumerate(args):
        before = args[at - 1] if at else ""
        flag = before.lstrip("-") if isinstance(before, str) and before.startswith("-") else ""
        if isinstance(value, str) and not has_reference(value) and is_secret(flag or "argument", value):
            kept[at] = _moved(_secret_name(name, f"argument-{at + 1}"), value, secrets)
    return kept


def _moved(secret: str, value: str, secrets: dict[str, str]) -> str:
    secrets[secret] = value
    return f"${{keyring:{secret}}}"


def _secret_name(server: str, key: str) -> str:
    return f"{server}.{_BAD_IN_SECRET.sub('-', key)}"[:96]


def _project_of(path: Path) -> str:
    """The project a file belongs to, by where it lies; none for a user's own."""
    if path.parent.name in (".vscode", ".cursor") and path.parent.parent != Path.home():
        return str(path.parent.parent)
    return str(path.parent) if path.name == ".mcp.json" else ""
