"""`checkrein servers connect`: point an MCP client to the gateway by showing or writing its settings."""

from __future__ import annotations

import os
import stat
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from checkrein.cli.opening import json_option
from checkrein.cli.terminal import dim, plain, say, say_json
from checkrein.doors.hooks import files, jsontext
from checkrein.doors.hooks.install import BACKUP
from checkrein.errors import ConfigError, InputError
from checkrein.hookclient import pump_words
from checkrein.runtime import door_file, write_door
from checkrein.settings.import_sources import found_in, is_ours
from checkrein.settings.servers import OURS

# Codex gives up on a call after a minute unless told otherwise; a person may need longer to answer.
_CODEX_SECONDS = 600


class Client(msgspec.Struct, frozen=True):
    """Where a client keeps its servers, and how it writes one."""

    title: str
    path: Callable[[], Path]
    entry: Callable[[list[str]], dict[str, Any]]
    top: str = "mcpServers"
    source: str = ""


def _plain(words: list[str]) -> dict[str, Any]:
    return {"command": words[0], "args": words[1:]}


def _typed(words: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(words)}


def _home(agent: str) -> Path:
    """The folder an agent keeps its own files in, wherever a variable moved it."""
    variable, standing = files.HOMES[agent]
    return Path(os.environ.get(variable) or standing).expanduser()


def _support() -> Path:
    return Path.home() / ("Library/Application Support" if sys.platform == "darwin" else ".config")


def _claude_code() -> Path:
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(moved) if moved else Path.home()) / ".claude.json"


CLIENTS = {
    "claude-code": Client("Claude Code", _claude_code, _typed, source="claude-code"),
    "codex": Client("Codex", lambda: _home("codex") / "config.toml", _plain, top="mcp_servers"),
    "gemini-cli": Client("Gemini CLI", lambda: _home("gemini-cli") / ".gemini" / "settings.json", _plain),
    "copilot-cli": Client(
        "Copilot CLI",
        lambda: _home("copilot-cli") / "mcp-config.json",
        lambda words: {"type": "local", **_plain(words), "tools": ["*"]},
    ),
    "cursor": Client("Cursor", lambda: Path.home() / ".cursor/mcp.json", _plain, source="cursor"),
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _support() / "Claude/claude_desktop_config.json",
        _plain,
        source="claude-desktop",
    ),
    "vscode": Client(
        "VS Code", lambda: _support() / "Code/User/mcp.json", _typed, top="servers", source="vscode"
    ),
}


@click.command()
@click.argument("client", required=False, type=click.Choice(list(CLIENTS)))
@click.option("--write", is_flag=True, help="Write it into your own settings of the client, after a backup.")
@json_option
def connect(client: str | None, write: bool, as_json: bool) -> None:
    """Show how an MCP client reaches the gateway, or write it into the client's settings.

    The client then starts one program of ours and sees the accepted tools of all servers as SERVER__TOOL.
    """
    if not door_file().exists():
        write_door()
    words = pump_words(door_file())
    if client is None:
        _show_any(words, write, as_json)
        return
    chosen = CLIENTS[client]
    path = chosen.path()
    before = files.text_of(path)
    after = _with_us(chosen, before or "", words, str(path))
    changed, backup = after != (before or ""), None
    if write and changed:
        backup = _backed_up(path, before)
        files.write(path, after, 0o600)
    if as_json:
        say_json(_as_json(client, chosen, words, path, write and changed, backup))
        return
    _tell(chosen, words, path, write, changed, backup)
    _tell_beside(chosen, path, after)


def _show_any(words: list[str], write: bool, as_json: bool) -> None:
    if write:
        raise InputError("Say which client.", remedy=f"One of: {', '.join(CLIENTS)}.")
    if as_json:
        say_json({"command": words[0], "args": words[1:], "clients": list(CLIENTS)})
        return
    say("Any MCP client reaches the gateway over standard input and output with:")
    say()
    say(_snippet("mcpServers", _plain(words)))
    say(f"For its own format: checkrein servers connect {{{'|'.join(CLIENTS)}}} [--write]")


def _as_json(
    client: str, chosen: Client, words: list[str], path: Path, written: bool, backup: Path | None
) -> dict[str, Any]:
    return {
        "client": client,
        "file": str(path),
        "entry": chosen.entry(words),
        "snippet": _shown(chosen, words),
        "written": written,
        "backup": str(backup) if backup else None,
    }


def _tell(
    chosen: Client, words: list[str], path: Path, write: bool, changed: bool, backup: Path | None
) -> None:
    if not changed:
        say(f"{chosen.title} is connected already: {plain(str(path))}")
        return
    if not write:
        say(f"Put this into {plain(str(path))}, or add --write:")
        say()
        say(plain(_shown(chosen, words)))
        return
    say(f"{'changed' if backup else 'wrote':<8} {plain(str(path))}")
    if backup:
        say(f"{'kept':<8} {plain(str(backup))}")
    say(f"Next: start {chosen.title} again.")


def _tell_beside(chosen: Client, path: Path, text: str) -> None:
    """What the client still starts itself goes past the gate, and nobody should be surprised by that."""
    if path.suffix == ".toml":
        beside = sorted(tomllib.loads(text).get(chosen.top, {}).keys() - {OURS})
    else:
        found = found_in(jsontext.parse(text, source=str(path)), path)
        beside = sorted({each.name for each in found if not is_ours(each.name, each.raw)})
    if not beside:
        return
    say(f"{chosen.title} also starts servers itself, past the gateway: {plain(', '.join(beside))}.")
    if chosen.source:
        say(dim(f"Bring them in: checkrein servers import --from {chosen.source}; then take them out there."))


def _shown(chosen: Client, words: list[str]) -> str:
    if chosen.path().suffix == ".toml":
        return _toml(words)
    return _snippet(chosen.top, chosen.entry(words))


def _snippet(top: str, entry: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode({top: {OURS: entry}}), indent=2).decode() + "\n"


def _toml(words: list[str]) -> str:
    # A JSON text or list of texts is TOML as well, but for the raw DEL, which no path of ours holds.
    command, args = (msgspec.json.encode(part).decode() for part in (words[0], words[1:]))
    lines = (f"[mcp_servers.{OURS}]", f"command = {command}", f"args = {args}")
    return "\n".join((*lines, f"tool_timeout_sec = {_CODEX_SECONDS}", ""))


def _with_us(chosen: Client, text: str, words: list[str], source: str) -> str:
    """The client's file with our entry in it; everything else stays byte for byte."""
    if chosen.path().suffix == ".toml":
        return _toml_with_us(text, words, source)
    value = jsontext.parse(text, source=source) if text.strip() else {}
    if not isinstance(value, dict) or not isinstance(value.get(chosen.top, {}), dict):
        raise ConfigError(chosen.top, None, "is not an object.", files.NOTHING_WRITTEN, source=source)
    wanted = chosen.entry(words)
    if value.get(chosen.top, {}).get(OURS) == wanted:
        return text
    return jsontext.set_member(text, (chosen.top, OURS), wanted, source=source)


def _toml_with_us(text: str, words: list[str], source: str) -> str:
    try:
        servers = tomllib.loads(text).get("mcp_servers", {})
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "(whole file)", None, f"is not valid TOML: {error}.", files.NOTHING_WRITTEN, source=source
        ) from None
    ours = servers.get(OURS) if isinstance(servers, dict) else None
    if isinstance(ours, dict):
        if (ours.get("command"), ours.get("args")) == (words[0], words[1:]):
            return text
        remedy = f"Nothing was changed. Write there: command = {words[0]!r}, args = {words[1:]!r}."
        raise ConfigError(
            f"mcp_servers.{OURS}", None, "is there already, in other words.", remedy, source=source
        )
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    made = f"{text}{gap}{_toml(words)}"
    try:
        tomllib.loads(made)
    except ValueError:
        # An inline table of servers can be added to by hand only.
        raise ConfigError(
            "mcp_servers", None, "cannot be added to here.", files.NOTHING_WRITTEN, source=source
        ) from None
    return made


def _backed_up(path: Path, before: str | None) -> Path | None:
    if before is None:
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    names = (
        path.with_name(f"{path.name}{BACKUP}{stamp}{more}")
        for more in ("", *(f"-{n}" for n in range(1, 1000)))
    )
    backup = next(name for name in names if not name.exists())
    files.write(backup, before, stat.S_IMODE(path.stat().st_mode))
    return backup
