"""Tools that are not a shell: files, patches, the web, sub-agents, MCP servers; one vocabulary.

Names and argument spellings live in `tables/_tools.toml`; paths and hosts are judged as in shell lines.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from checkrein.call import GLOBAL_DOMAIN, Category, Effect, ToolCall
from checkrein.classify import arming, domains, hosts
from checkrein.classify.findings import Finding, Part
from checkrein.classify.paths import Places
from checkrein.classify.tables import Tables, data
from checkrein.classify.words import GLOB, Word

_PATCH = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\*\*\* (Move) to: (.+)$|^(?:\+\+\+|---) [ab]/(\S+)", re.M
)
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LIFECYCLE = re.compile(r'"(?:pre|post)?(?:install|prepare|publish|pack|test|build|start)"\s*:')
_MAX_VALUES = 200


@cache
def vocabulary() -> dict[str, str]:
    """Every agent's name for a tool, lower case, to the kind of tool it is."""
    return {name.lower(): kind for kind, names in data("_tools")["kinds"].items() for name in names}


def kind_of(call: ToolCall) -> str:
    return vocabulary().get(call.tool.lower(), "") if call.server is None else "mcp"


def argument(call: ToolCall, key: str) -> Any:
    """An argument under any of the spellings agents use for it."""
    for name in data("_tools")["arguments"][key]:
        if name in call.arguments:
            return call.arguments[name]
    return None


class Judge:
    """One non-shell call."""

    def __init__(self, call: ToolCall, places: Places, tables: Tables) -> None:
        self.call, self.places, self.tables = call, places, tables
        self.part = Part(call.name)
        self.fallback = "file_read"

    def find(self, kind: str, scope: str, target: str, why: str, category: Category | None = None) -> None:
        worst = domains.category(kind, scope) if category is None else category
        self.part.findings.append(Finding(Effect(kind, scope, target[:200]), worst, why))

    def judge(self) -> None:
        kind = kind_of(self.call)
        method = getattr(self, f"_{kind}", None) if kind else None
        (method or self._unknown)()

    def _unknown(self) -> None:
        self.fallback = GLOBAL_DOMAIN
        why = f"`{self.call.name}` is not a tool we know"
        self.part.findings.append(Finding(Effect("note", "", self.call.name), Category.medium, why))

    def _quiet(self) -> None:
        self.find("note", "", self.call.name, f"`{self.call.name}` only organises the agent's own work")

    def _agent(self) -> None:
        self.find("note", "", self.call.name, "a sub-agent starts; each of its own calls is judged by itself")

    def _input(self) -> None:
        self.find("exec", "process", self.call.name, "it types into a running program")

    def _memory(self) -> None:
        self.find("write", "agent-config", "memory", "it writes what the agent will believe next time")

    def _paths(self, key: str) -> list[str]:
        value = argument(self.call, key)
        values = value if isinstance(value, list) else [value]
        return [v for v in values if isinstance(v, str) and v][:_MAX_VALUES]

    def _read(self) -> None:
        self._reading("read")

    def _search(self) -> None:
        self._reading("search")

    def _list(self) -> None:
        for path in self._paths("path"):
            self.find("read", "list", path, f"it looks at {path}")

    def _reading(self, verb: str) -> None:
        for path in self._paths("path") or ["."]:
            kind = GLOB if any(c in path for c in "*?[") else 0
            place = self.places.place(Word(path, kind))
            scope = (
                "secret" if place.scope == "secret" else "project" if place.scope == "device" else place.scope
            )
            self.find("read", scope, place.path, f"it {verb}s {path} ({scope})")

    def _glob(self) -> None:
        self.find(
            "read", "list", str(argument(self.call, "pattern") or "")[:80], "it looks for names of files"
        )

    def _write(self) -> None:
        paths = self._paths("path")
        if not paths:
            self.find("write", "unknown", "", "it writes a file it does not name", Category.high)
        for path in paths:
            self.written(path, "write")

    def written(self, path: str, role: str) -> None:
        place = self.places.place(Word(path))
        armed = arming.what(place.path)
        if role == "write" and armed and place.scope not in ("self", "agent-hooks", "vcs-internal", "secret"):
            scope = arming.scope(armed)
            self.find("write", scope, place.path, f"it writes {path}, which {armed}")
            if place.scope in ("docs", "src"):
                self.find("write", place.scope, place.path, f"it writes {path} ({place.scope})")
        elif place.scope == "null":
            self.find("write", "outside", place.path, f"it writes {path}")
        else:
            self.find(role, place.scope, place.path, f"it {role}s {path} ({place.scope})")
        if path.endswith("package.json") and _LIFECYCLE.search(_content(self.call)):
            self.find("write", "armed", place.path, f"it changes scripts in {path} that npm runs by itself")

    def _patch(self) -> None:
        text = argument(self.call, "patch")
        if isinstance(text, list):
            text = "\n".join(str(item) for item in text[:_MAX_VALUES])
        found = _PATCH.findall(text) if isinstance(text, str) else []
        if not found:
            self.find("write", "unknown", "", "it applies a patch whose files we cannot read", Category.high)
        for action, path, move, target, plain in found[:_MAX_VALUES]:
            if move or plain:
                self.written((target or plain).strip(), "write")
            else:
                self.written(path.strip(), "delete" if action == "Delete" else "write")

    def _editor(self) -> None:
        """One tool with a command in it (`str_replace_editor`): viewing reads, everything else writes."""
        if self.call.arguments.get("command") in ("view", "undo_view"):
            self._reading("read")
        else:
            self._write()

    def _fetch(self) -> None:
        url = argument(self.call, "url")
        if not isinstance(url, str) or not url:
            self.find("network", "web", "", "it fetches a page from the web")
            return
        scope, host = hosts.scope_of(Word(url), self.tables.known_hosts)
        self.find(
            "network",
            "web" if scope in ("outside", "known") else scope,
            host,
            f"it fetches a page from {host}",
        )

    def _web_search(self) -> None:
        self.find("network", "web", "search", "it searches the web")

    def _powershell(self) -> None:
        text = argument(self.call, "command")
        self.find("exec", "code", "powershell", "PowerShell runs code we have no grammar for")
        self.hints(text if isinstance(text, str) else "")

    def hints(self, text: str) -> None:
        from checkrein.classify.interpreters import _hints

        for pattern, effect, scope, why in _hints():
            if match := pattern.search(text[:20_000]):
                self.find(effect, scope, match.group()[:60], why)

    def _mcp(self) -> None:
        """INVARIANT: a server's own words about a tool raise its risk; only a pinned server's lower it."""
        server = self.call.server or ""
        words = {token.lower() for token in _TOKENS.findall(self.call.tool)}
        rows = data("_tools")["names"]
        first = next(
            (t.lower() for t in _TOKENS.findall(self.call.tool) if t.lower() not in ("mcp", server)), ""
        )
        reads = first in rows["reads"]
        annotations = self.call.annotations
        level = Category.medium
        if words & set(rows["critical"]) and not reads:
            level = Category.critical
        elif words & set(rows["high"]) or annotations.get("destructiveHint") is True:
            level = Category.high
        elif reads and annotations.get("pinned") is True and annotations.get("readOnlyHint") is True:
            level = Category.low
        kind = "message" if level is Category.critical else "mcp"
        why = f"`{self.call.name}` " + _MCP_SAYS[level]
        self.part.findings.append(Finding(Effect(kind, f"mcp:{server}", self.call.tool), level, why))
        self._values(self.call.arguments, 0)

    def _values(self, value: Any, depth: int) -> None:
        """Delicate paths anywhere in an MCP tool's arguments."""
        if depth > 6 or len(self.part.findings) > _MAX_VALUES:
            return
        if isinstance(value, dict):
            for item in list(value.values())[:_MAX_VALUES]:
                self._values(item, depth + 1)
        elif isinstance(value, list):
            for item in value[:_MAX_VALUES]:
                self._values(item, depth + 1)
        elif isinstance(value, str) and len(value) < 4096 and ("/" in value or value.startswith((".", "~"))):
            place = self.places.place(Word(value.removeprefix("file://")))
            if place.scope == "secret":
                self.find("read", "secret", place.path, f"its arguments name {value[:80]} (secret)")
            elif place.scope in ("self", "agent-hooks"):
                self.find(
                    "write", place.scope, place.path, f"its arguments name {value[:80]} ({place.scope})"
                )


_MCP_SAYS = {
    Category.low: "only reads, says its pinned server",
    Category.medium: "is a tool of a server we know nothing about",
    Category.high: "changes or deletes something that is hard to bring back",
    Category.critical: "sends, publishes or pays",
}


def _content(call: ToolCall) -> str:
    parts = [call.arguments.get(k) for k in ("content", "new_string", "file_text", "new_str", "edits")]
    return "\n".join(p if isinstance(p, str) else str(p)[:20_000] for p in parts if p)
