"""A question in words: what a call would do, and how dangerous that is. Pure; reads what the ledger keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Dangers a person should see at a glance, worst first: (kind, scope), where an empty one fits any.
_DANGERS: dict[str, tuple[tuple[str, str], ...]] = {
    "deletes": (("delete", ""),),
    "pays": (("message", "payment"),),
    "sends": (("message", ""),),
    "outside": (
        ("network", "outside"),
        ("network", "flow"),
        ("network", "known"),
        ("network", "service-write"),
        ("git-remote", ""),
    ),
    "secrets": (("secret", ""), ("", "secret"), ("", "self-secret"), ("network", "flow")),
    "privilege": (("privilege", ""),),
    "self": (("self", ""), ("", "self"), ("", "self-secret"), ("", "agent-hooks")),
}
_DOES = {
    "read": "reads",
    "write": "writes",
    "download": "downloads to",
    "delete": "deletes",
    "exec": "runs",
    "test": "runs tests",
    "network": "talks to",
    "message": "sends a message through",
    "privilege": "changes permissions or users",
    "process": "ends or controls processes",
    "git": "changes the local repository",
    "git-remote": "talks to a git remote",
    "package": "installs or removes packages",
    "config": "changes configuration",
    "secret": "handles secrets",
    "self": "touches Checkrein itself",
}
_BARE = frozenset(
    {"test", "privilege", "process", "git", "git-remote", "package", "config", "secret", "self"}
)
_SECRETS = ("secret", "self-secret")
# A server's tool tells by its name that it is about money: `create_payment`, `chargeCard`.
_MONEY = frozenset(
    "bid buy charge checkout deposit donate gift invoice order pay payment payments payout purchase refund "
    "tip trade transfer wire withdraw".split()
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MOST_NAMED = 3


def dangers(effects: Iterable[Mapping[str, str]]) -> list[str]:
    """The dangers in a call's effects, worst first."""
    pairs = [_pair(each) for each in effects]
    return [
        name for name, marks in _DANGERS.items() if any(_fits(mark, pair) for mark in marks for pair in pairs)
    ]


def _pair(effect: Mapping[str, str]) -> tuple[str, str]:
    kind, scope = effect.get("kind", ""), effect.get("scope", "")
    words = {word.lower() for word in _WORD.findall(effect.get("target", ""))}
    return kind, "payment" if kind == "message" and words & _MONEY else scope


def _fits(mark: tuple[str, str], pair: tuple[str, str]) -> bool:
    return mark[0] in ("", pair[0]) and mark[1] in ("", pair[1])


def summary(tool: str, effects: Iterable[Mapping[str, str]], agent: str = "") -> str:
    """`claude-code wants to use Bash: it writes src/a.py and runs tests.`"""
    done: dict[str, list[str]] = {}
    for each in effects:
        # Reading goes without saying beside anything else; not so the reading of a secret.
        kind, scope = each.get("kind", ""), each.get("scope", "")
        kind = "secret" if kind == "read" and scope in _SECRETS else kind
        if kind in _DOES and (kind != "read" or len(done) == 0):
            done.setdefault(kind, []).append(each.get("target", ""))
    if len(done) > 1:
        done.pop("read", None)
    parts = [_part(kind, targets) for kind, targets in done.items()]
    who = agent or "An agent"
    return f"{who} wants to use {tool}" + (f": it {_joined(parts)}." if parts else ".")


def _part(kind: str, targets: list[str]) -> str:
    named = [target for target in dict.fromkeys(targets) if target]
    if kind in _BARE:
        return _DOES[kind]
    if not named:
        return f"{_DOES[kind]} something"
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"{_DOES[kind]} {', '.join(named[:_MOST_NAMED])}{more}"


def _joined(parts: list[Any]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
