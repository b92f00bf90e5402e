"""What a call can break: tool names and the plainest commands are known, the rest is medium and opaque."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from checkrein.call import GLOBAL_DOMAIN, Category, Effect, Reason, Risk, ToolCall

_PLAIN = re.compile(r"[\w@%+=:,./-]+(?: +[\w@%+=:,./-]+)*", re.ASCII)
_READERS = ("Read", "Glob", "Grep", "LS", "NotebookRead")
_WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_WEB = ("WebFetch", "WebSearch")

# The seed's lists: a command (and subcommand) as a person would name it.
_LOW: Mapping[str, str] = {
    **dict.fromkeys(
        "ls cat grep pwd du file head tail wc basename dirname date whoami echo".split(), "file_read"
    ),
    **dict.fromkeys(("git status", "git log", "git show"), "git_read"),
    **dict.fromkeys(("pytest", "npm test", "go test", "cargo test"), "test_run"),
}
_HIGH: Mapping[str, str] = {
    **dict.fromkeys("rm chmod chown".split(), "file_write"),
    **dict.fromkeys("apt apt-get brew yum dnf".split(), "package"),
    **dict.fromkeys(("pip install", "npm install"), "package"),
    **dict.fromkeys(("systemctl", "reboot", "shutdown"), "shell_exec"),
    **dict.fromkeys(("git push", "git pull", "git fetch"), "git_remote"),
    "git merge": "git_local",
}
_CRITICAL = frozenset("curl wget mail sendmail ssh scp checkrein".split())
_MEDIUM: Mapping[str, str] = dict.fromkeys(("git add", "git commit"), "git_local")


def classify(call: ToolCall) -> Risk:
    """The call's risk; what is not understood is never low."""
    if call.server is not None:
        return _risk(
            Category.medium, f"mcp:{call.server}", f"`{call.name}` is a tool of server {call.server}"
        )
    if call.tool == "Bash":
        return _command(call.arguments.get("command"))
    if call.tool in _READERS:
        return _risk(Category.low, "file_read", f"{call.tool} only reads", "read")
    if call.tool in _WRITERS:
        return _write(call)
    if call.tool in _WEB:
        return _risk(Category.medium, "web_read", f"{call.tool} reads from the web", "network")
    return _risk(Category.medium, GLOBAL_DOMAIN, f"`{call.tool}` is not a tool we know")


def _command(command: object) -> Risk:
    if not isinstance(command, str) or not _PLAIN.fullmatch(command):
        return _risk(
            Category.medium,
            "shell_exec",
            "the command is more than one plain command",
            "exec",
            complexity=1.0,
        )
    words = command.split()
    for name in (" ".join(words[:2]), words[0]):
        if name in _CRITICAL:
            return _risk(Category.critical, "network", f"`{name}` reaches beyond this machine", "network")
        if name in _HIGH:
            return _risk(
                Category.high, _HIGH[name], f"`{name}` is on the list of dangerous commands", "write"
            )
        if name in _LOW:
            return _risk(Category.low, _LOW[name], f"`{name}` is on the list of safe commands", "read")
        if name in _MEDIUM:
            return _risk(Category.medium, _MEDIUM[name], f"`{name}` changes the local repository", "write")
    return _risk(Category.medium, "shell_exec", f"`{words[0]}` is not a command we know", "exec")


def _write(call: ToolCall) -> Risk:
    path = call.arguments.get("file_path", call.arguments.get("notebook_path"))
    if not isinstance(path, str) or not path:
        return _risk(
            Category.medium,
            "file_write",
            f"{call.tool} writes a file it does not name",
            "write",
            complexity=1.0,
        )
    absolute = posixpath.normpath(posixpath.join(call.project or "/", path))
    inside = posixpath.relpath(absolute, call.project or "/").split("/")
    domain = (
        "docs_write" if inside[0] == "docs" else "file_write_src" if "src" in inside[:-1] else "file_write"
    )
    return _risk(Category.medium, domain, f"{call.tool} writes {path}", "write")


def _risk(
    category: Category, domain: str, reason: str, effect: str = "exec", complexity: float = 0.5
) -> Risk:
    return Risk(
        category=category,
        domains=(domain,),
        effects=(Effect(effect),),
        complexity=complexity,
        reasons=(Reason(f"{reason}: {category.name} risk."),),
    )
