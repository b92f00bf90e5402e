"""The risk stage: a tool call in, what it can break out.

Pure: it decides from the call, its tables and a path resolver passed in. The pipeline calls it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from checkrein.call import Category, Effect, Reason, Risk, ToolCall
from checkrein.classify import (  # noqa: F401 - each registers the commands it knows
    builds,
    builtins,
    databases,
    finders,
    interpreters,
    machines,
    readers,
    scripts,
    services,
    vcs,
    wrappers,
)
from checkrein.classify.commands import run
from checkrein.classify.domains import complexity, risk
from checkrein.classify.findings import Finding
from checkrein.classify.flows import flows
from checkrein.classify.normalise import MAX_LENGTH
from checkrein.classify.paths import Places
from checkrein.classify.shell import Overflow, Shell
from checkrein.classify.tables import Tables
from checkrein.classify.tools import Judge, argument, kind_of
from checkrein.classify.words import Word

__all__ = ["Tables", "classify", "describe"]


@cache
def _home() -> str:
    return os.path.expanduser("~")  # noqa: PTH111 - a string, computed once


def classify(
    call: ToolCall,
    *,
    tables: Tables | None = None,
    resolve: Callable[[str], str] | None = None,
    home: str | None = None,
    own: tuple[str, ...] = (),
) -> Risk:
    """What `call` can break; `own` are folders that count as ours besides the usual ones."""
    tables = tables or Tables.load()
    places = Places(project=call.project, cwd=call.cwd, home=home or _home(), resolve=resolve, own=own)
    if kind_of(call) == "shell":
        return _shell(call, tables, places)
    judge = Judge(call, places, tables)
    judge.judge()
    extra = flows((finding.effect for finding in judge.part.all()), call.history)
    return risk(judge.part, complexity=0.5, fallback=judge.fallback, extra=extra)


def _shell(call: ToolCall, tables: Tables, places: Places) -> Risk:
    command = argument(call, "command")
    shell = Shell(tables, places, run)
    directory = argument(call, "directory")
    if isinstance(directory, str) and directory:
        shell.cwd = places.absolute(directory, None)
    try:
        if isinstance(command, str):
            if len(command) > MAX_LENGTH:
                return _capped(f"the line has {len(command):,} characters; we read up to {MAX_LENGTH:,}")
            shell.text(command)
        elif isinstance(command, list) and command and all(isinstance(item, str) for item in command):
            shell.argv([Word(item[:MAX_LENGTH]) for item in command[:1000]])
        else:
            return _malformed(call)
    except (Overflow, RecursionError):
        # INVARIANT: a line that exceeds a cap is never low
        return _capped("the line has more parts or levels than we follow")
    if shell.part.only("note", "state"):
        shell.find("config", "session", "", "it only changes the shell, for commands that are still to come")
    extra = flows((finding.effect for finding in shell.part.all()), call.history)
    size = complexity(shell.part.leaves(), shell.nesting, shell.expander.dynamic, shell.opaque)
    found = risk(shell.part, complexity=size, extra=extra)
    return msgspec.structs.replace(found, commands=tuple(shell.commands))


def _capped(why: str) -> Risk:
    return Risk(
        category=Category.high,
        domains=("shell_exec",),
        effects=(Effect("exec", "unknown", ""),),
        complexity=1.0,
        reasons=(Reason(f"{why} (high)"),),
    )


def _malformed(call: ToolCall) -> Risk:
    finding = Finding(
        Effect("exec", "unknown", ""), Category.critical, f"`{call.name}` has no command we can read"
    )
    return Risk(
        category=finding.category,
        domains=("shell_exec",),
        effects=(finding.effect,),
        complexity=1.0,
        reasons=(Reason(f"{finding.why} (critical)"),),
    )


def describe(command_name: str, *, tables: Tables | None = None) -> dict[str, Any]:
    """What we know of a command (or `git log`), as plain data; empty when we know nothing."""
    tables = tables or Tables.load()
    spec = tables.spec(command_name)
    if spec is None:
        return {}
    roles: dict[str, list[str]] = {}
    for name, option in sorted(spec.options.items()):
        roles.setdefault(option.role, []).append(name + option.value)
    prefix = f"{command_name} "
    below = sorted(key for key in tables.commands if key.startswith(prefix) and " " not in key[len(prefix) :])
    return {
        "command": command_name,
        "about": spec.raw.get("about", ""),
        "operands": list(spec.args),
        "options": roles,
        "other_options": "harmless" if spec.open else "medium",
        "effect": spec.effect,
        "risk": spec.risk.name if spec.risk is not None else "",
        "verbs": dict(zip(("read", "write", "secret", "critical"), map(list, spec.verbs), strict=True)),
        "subcommands": below,
    }
