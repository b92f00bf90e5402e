"""Tools that are not a shell: files, patches, the web, sub-agents, MCP servers; one vocabulary.

Names and argument spellings live in `tables/_tools.toml`; paths and hosts are judged as in shell lines.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from checkrein.call import GLOBAL_DOMAIN, Category, Effect, ToolCall
from checkrein.classify import arming, domains, hosts
from checkrein.classify.arguments import path as path_argument
from checkrein.classify.commands import handler, run
from checkrein.classify.findings import Finding, Part
from checkrein.classify.normalise import MAX_LENGTH
from checkrein.classify.paths import Places
from checkrein.classify.shell import Overflow, Shell
from checkrein.classify.tables import Spec, Tables, data
from checkrein.classify.words import EMPTY, GLOB, Word, braces

_PATCH = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\*\*\* (Move) to: (.+)$|^(?:\+\+\+|---) [ab]/(\S+)", re.M
)
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LIFECYCLE = re.compile(r'"(?:pre|post)?(?:install|prepare|publish|pack|test|build|start)"\s*:')
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN_SHELL = re.compile(r"(?:(?:/usr(?:/local)?)?/bin/)?(?:ba|z|da|k)?sh")
_URL = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_VALUES = 200
_UNREADABLE_PATCH = "it applies a patch whose files we cannot read"
# Scopes that say worse of a write than that something will run it.
_DELICATE = ("self", "self-secret", "agent-hooks", "vcs-internal", "secret")


@cache
def vocabulary() -> dict[str, str]:
    """Every agent's name for a tool, lower case, to the kind of tool it is."""
    return {name.lower(): kind for kind, names in data("_tools")["kinds"].items() for name in names}


def kind_of(call: ToolCall) -> str:
    if call.server is not None:
        return "mcp"
    kind = vocabulary().get(call.tool.lower(), "")
    return "escalated" if kind == "shell" and any(map(_leaves_sandbox, _spelled(call, "escalate"))) else kind


def _leaves_sandbox(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and value.lower() not in data("_tools")["sandboxed"]
    return bool(value)


def _spelled(call: ToolCall, key: str) -> list[Any]:
    """Every value of an argument, under all the spellings agents use for it."""
    names = data("_tools")["arguments"][key]
    return [call.arguments[name] for name in names if name in call.arguments]


def argument(call: ToolCall, key: str) -> Any:
    """An argument under any of the spellings agents use for it; a command with all that is set around it."""
    spelled = _spelled(call, key)
    if key == "command":
        return _command(call, spelled)
    return spelled[0] if spelled else None


def _command(call: ToolCall, spelled: list[Any]) -> Any:
    """INVARIANT: when one argument is spelled twice every spelling counts."""
    around = _around(call)
    if around is None or not spelled:
        return None
    if len(spelled) == 1 and not around:
        return spelled[0]
    lines: list[str] = []
    for value in spelled:
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            lines.append(shlex.join(value))
        elif isinstance(value, str):
            lines.append(value)
        else:
            return None
    return "\n".join([*around, *lines])


def _around(call: ToolCall) -> list[str] | None:
    """The environment and the shell a call asks for, as the lines that would set them; None: unreadable."""
    lines: list[str] = []
    for value in _spelled(call, "env"):
        pairs = value.items() if isinstance(value, dict) else _pairs(value)
        for name, text in pairs:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                return None
            lines.append(f"export {name}={shlex.quote(str(text))}")
    shells = [value for value in _spelled(call, "shell") if isinstance(value, str) and value]
    lines += [shlex.quote(value) for value in shells if not _PLAIN_SHELL.fullmatch(value)]
    return lines


def _pairs(value: Any) -> list[tuple[str, str]]:
    items = value if isinstance(value, list) else [value] if value else []
    return [(name, text) for name, _, text in (str(item).partition("=") for item in items)]


def patched(text: str) -> list[tuple[str, str]]:
    """What a patch does to which file: (role, path)."""
    return [
        ("delete" if action == "Delete" else "write", (path or target or plain).strip())
        for action, path, _, target, plain in _PATCH.findall(text)[:_MAX_VALUES]
    ]


@handler("apply_patch")
def apply_patch(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Codex's own tool as a command; the patch is its argument or its input."""
    text = words[0] if words else stdin
    found = patched(text.text) if text is not None and text.literal else []
    if not found:
        shell.find("write", "unknown", "", _UNREADABLE_PATCH, Category.high)
    for role, name in found:
        path_argument(shell, role, Word(name))
    return EMPTY


def says_nothing(value: Any, depth: int = 0) -> bool:
    """Whether nothing in an MCP tool's arguments can name a path or a host: `Judge._values` finds nothing.

    INVARIANT: whatever `_values` would look at is not nothing.
    """
    if isinstance(value, str):
        return "/" not in value and not value.startswith((".", "~"))
    if depth > 6:
        return False
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return True
    for item in value:  # noqa: SIM110 - asked for every call
        if not says_nothing(item, depth + 1):
            return False
    return True


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

    def _skill(self) -> None:
        self.find("exec", "skill", self.call.name, "it runs a prepared command or skill we cannot see")

    def _escalated(self) -> None:
        """A shell call that asks to leave its sandbox: what it does, and that it does so unprotected."""
        self.find("privilege", "sandbox", self.call.name, "it asks to run outside the sandbox")
        command = argument(self.call, "command")
        shell = Shell(self.tables, self.places, run)
        directory = argument(self.call, "directory")
        if isinstance(directory, str) and directory:
            shell.cwd = self.places.absolute(directory, None)
        try:
            if isinstance(command, str) and len(command) <= MAX_LENGTH:
                shell.text(command)
            elif isinstance(command, list) and all(isinstance(item, str) for item in command):
                shell.argv([Word(item[:MAX_LENGTH]) for item in command[:1000]])
            else:
                self.find("exec", "unknown", "", "it has no command we can read", Category.critical)
        except (Overflow, RecursionError):
            self.find(
                "exec", "unknown", "", "the line has more parts or levels than we follow", Category.high
            )
        self.part.children.append(shell.part)

    def _input(self) -> None:
        self.find("exec", "process", self.call.name, "it types into a running program")

    def _memory(self) -> None:
        self.find("write", "agent-config", "memory", "it writes what the agent will believe next time")

    def _paths(self, key: str) -> list[str]:
        spelled = [v if isinstance(v, list) else [v] for v in _spelled(self.call, key)]
        values = (v for group in spelled for v in group if isinstance(v, str) and v)
        return list(dict.fromkeys(values))[:_MAX_VALUES]

    def _read(self) -> None:
        self._reading("read")

    def _search(self) -> None:
        self._reading("search")
        default = "files_with_matches" if self.call.tool == "Grep" else "content"
        if self.call.arguments.get("output_mode", default) in ("files_with_matches", "count"):
            return
        for pattern in self._paths("files"):
            if any(map(self._names_secret, braces(pattern) or [pattern])):
                self.find("read", "secret", pattern[:80], f"it shows what {pattern[:80]} holds (secret)")

    def _names_secret(self, pattern: str) -> bool:
        """Whether a pattern of file names, matched at any depth and in any case, can mean a secret."""
        name = pattern.lower().rpartition("/")[2]
        if pattern.startswith("!") or len(name.strip("*?.")) < 2:
            return False
        examples = data("_paths")["secret"]["examples"]
        return self.places.place(Word(name)).scope == "secret" or any(fnmatchcase(e, name) for e in examples)

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
        if role == "write" and armed and place.scope not in _DELICATE:
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
        found = patched(text) if isinstance(text, str) else []
        if not found:
            self.find("write", "unknown", "", _UNREADABLE_PATCH, Category.high)
        for role, path in found:
            self.written(path, role)

    def _editor(self) -> None:
        """One tool with a command in it (`str_replace_editor`): viewing reads, everything else writes."""
        if self.call.arguments.get("command") in ("view", "undo_view"):
            self._reading("read")
        else:
            self._write()

    def _fetch(self) -> None:
        urls = self._paths("url")
        if not urls:
            self.find("network", "web", "", "it fetches a page from the web")
        for url in urls:
            scope, host = hosts.scope_of(Word(url), self.tables.known_hosts)
            reach = "web" if scope in ("outside", "known") else scope
            self.find("network", reach, host, f"it fetches a page from {host}")

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
        """Delicate paths and outside hosts anywhere in an MCP tool's arguments."""
        if depth > 6 or len(self.part.findings) > _MAX_VALUES:
            return
        if isinstance(value, dict):
            for item in list(value.values())[:_MAX_VALUES]:
                self._values(item, depth + 1)
        elif isinstance(value, list):
            for item in value[:_MAX_VALUES]:
                self._values(item, depth + 1)
        elif isinstance(value, str) and _URL.match(value):
            scope, host = hosts.scope_of(Word(value[:4096]), self.tables.known_hosts)
            if scope == "outside":
                why = f"its arguments name the outside host {host[:80]}"
                self.find("mcp", f"mcp:{self.call.server}", host, why, Category.medium)
        elif isinstance(value, str) and len(value) < 4096 and ("/" in value or value.startswith((".", "~"))):
            place = self.places.place(Word(value.removeprefix("file://")))
            if place.scope == "secret":
                self.find("read", "secret", place.path, f"its arguments name {value[:80]} (secret)")
            elif place.scope in ("self", "self-secret", "agent-hooks"):
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
