"""Other programs' files with servers: where they lie, what stands in them, and which entry is our own.

`cli.servers_import`, `cli.servers_connect` and `newcomers` read the files; nothing here reads or writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import msgspec

from checkrein.errors import ConfigError
from checkrein.settings.servers import OURS

SOURCES = ("claude-desktop", "claude-code", "cursor", "vscode", "codemode-bridge")


class Found(msgspec.Struct, frozen=True):
    """A server as another program's file has it; `folder` is the project it belongs to."""

    name: str
    raw: Any
    where: str
    folder: str = ""
    bundle: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Found({self.name!r}, {self.where!r})"


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


def _project_of(path: Path) -> str:
    """The project a file belongs to, by where it lies; none for a user's own."""
    if path.parent.name in (".vscode", ".cursor") and path.parent.parent != Path.home():
        return str(path.parent.parent)
    return str(path.parent) if path.name == ".mcp.json" else ""


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
