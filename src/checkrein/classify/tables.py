"""What we know of commands: TOML files read once, turned into option grammars when a command is first met.

Users extend them in the same shape; a project's file may only tighten. Nothing here judges a call.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from checkrein.call import Category
from checkrein.errors import ConfigError

ROLES: Mapping[str, str] = {
    "opts": "text",
    "lists": "list",
    "reads": "read",
    "writes": "write",
    "deletes": "delete",
    "execs": "exec",
    "shells": "shell",
    "codes": "code",
    "sqls": "sql",
    "urls": "url",
    "hosts": "host",
    "configs": "config",
    "secrets": "secret",
    "privileges": "privilege",
    "targets": "target",
    "inplace": "inplace",
    "scripts": "script",
    "scriptfiles": "scriptfile",
    "envs": "env",
    "dry": "dry",
    "medium": "medium",
    "high": "high",
    "critical": "critical",
    "low": "low",
}
"""Table key to the role its options play."""

_WORDS = (
    "about",
    "args",
    "effect",
    "scope",
    "risk",
    "style",
    "handler",
    "gives",
    "like",
    "needs",
    "verb",
    "groups",
)
_FLAGS = ("open", "share", "bare")
_VERBS = ("read_verbs", "write_verbs", "secret_verbs", "critical_verbs")
KEYS = frozenset((*ROLES, *_WORDS, *_FLAGS, *_VERBS))
STYLES = ("gnu", "long", "plain")


class Option(NamedTuple):
    """One option: the role its value (or its presence) plays, and whether it takes a value."""

    role: str
    value: str  # "" none, "=" required, "?" optional and attached


class Spec:
    """The grammar of one command or subcommand, ready to parse with."""

    __slots__ = (
        *("args", "bare", "effect", "gives", "groups", "handler", "name", "needs", "open", "options", "raw"),
        *("risk", "scope", "style", "verb", "verbs"),
    )

    def __init__(self, name: str, raw: Mapping[str, Any], inherited: Mapping[str, Option]) -> None:
        self.name, self.raw = name, raw
        self.args: tuple[str, ...] = tuple(raw.get("args", "text*").split())
        self.effect: str = raw.get("effect", "")
        self.scope: str = raw.get("scope", "")
        self.risk: Category | None = Category[raw["risk"]] if "risk" in raw else None
        self.open: bool = raw.get("open", False)
        self.bare: bool = raw.get("bare", True)
        self.style: str = raw.get("style", "gnu")
        self.handler: str = raw.get("handler", "")
        self.gives: str = raw.get("gives", "found")
        self.needs: str = raw.get("needs", "")
        self.groups: tuple[str, ...] = tuple(raw.get("groups", "").split())
        self.verbs = tuple(tuple(raw[key].split()) if key in raw else () for key in _VERBS)
        anything = "*" in self.verbs[1] or "*" in self.verbs[2]
        self.verb: str = raw.get("verb", "first" if anything else "any")
        self.options: dict[str, Option] = dict(inherited)
        for key, role in ROLES.items():
            if key in raw:
                self.options.update(_options(raw[key], role, self.style))


def _options(text: str, role: str, style: str) -> Iterable[tuple[str, Option]]:
    """`-ab -o= --out= --color?` as options; `-ab` is two flags unless the style is `long`."""
    for token in text.split():
        name, value = (token[:-1], token[-1]) if token[-1] in "=?" else (token, "")
        if style == "gnu" and not value and name[0] == "-" and name[1:2] != "-" and len(name) > 2:
            for letter in name[1:]:
                yield f"-{letter}", Option(role, "")
        else:
            yield name, Option(role, value)


def matches_verb(word: str, verbs: tuple[str, ...]) -> bool:
    return any(word == verb or ("*" in verb and fnmatchcase(word, verb)) for verb in verbs)


class Tables:
    """All command knowledge of one policy: ours, then the user's, then a project's (which only tightens)."""

    def __init__(
        self,
        commands: dict[str, dict[str, Any]],
        known_hosts: tuple[str, ...] = (),
        ignored: tuple[str, ...] = (),
    ) -> None:
        self.commands = commands
        self.known_hosts = frozenset(known_hosts)
        self.ignored = ignored
        self._specs: dict[str, Spec] = {}
        self._parents = {key.rpartition(" ")[0] for key in commands if " " in key}

    @classmethod
    def load(
        cls,
        extra: Mapping[str, Any] | None = None,
        *,
        known_hosts: tuple[str, ...] = (),
        tighten_only: bool = False,
        base: Tables | None = None,
    ) -> Tables:
        """The packaged tables with `extra` entries on top; what a project may not loosen is in `ignored`."""
        base = base or packaged()
        if not extra and not known_hosts:
            return base
        commands, ignored = dict(base.commands), list(base.ignored)
        hosts = tuple(base.known_hosts)
        if known_hosts and tighten_only:
            ignored.append("known_hosts: only a user's own file can vouch for hosts")
        else:
            hosts += known_hosts
        for name, raw in _expanded(extra or {}):
            check(name, raw)
            # INVARIANT: a project's table never lowers a built-in judgement
            if tighten_only and not _tightens(raw):
                ignored.append(f"{name}: a project can only raise `risk`")
                continue
            before = commands.get(name, {})
            if tighten_only and "risk" in before and Category[before["risk"]] > Category[raw["risk"]]:
                ignored.append(f"{name}: its risk is already {before['risk']}")
                continue
            commands[name] = _merged(before, raw)
        return cls(commands, hosts, tuple(ignored))

    def spec(self, key: str) -> Spec | None:
        found = self._specs.get(key)
        if found is None:
            raw = self.commands.get(key)
            if raw is None:
                return None
            found = self._specs[key] = self._compile(key, raw)
        return found

    def has_subcommands(self, key: str) -> bool:
        return key in self._parents

    def _compile(self, key: str, raw: Mapping[str, Any]) -> Spec:
        seen = {key}
        while "like" in raw:
            other = raw["like"]
            if other in seen or other not in self.commands:
                break
            seen.add(other)
            raw = {**self.commands[other], **{k: v for k, v in raw.items() if k != "like"}}
        inherited: dict[str, Option] = {}
        parent = key.rpartition(" ")[0]
        if parent and (above := self.spec(parent)) is not None and above.raw.get("share"):
            inherited = above.options
        return Spec(key, raw, inherited)


def _merged(before: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """An entry on top of ours: options are added, everything else replaced."""
    added = {key: f"{before[key]} {raw[key]}" for key in ROLES if key in before and key in raw}
    return {**before, **raw, **added}


def _tightens(raw: Mapping[str, Any]) -> bool:
    return set(raw) <= {"risk", "about"} and raw.get("risk") in ("medium", "high", "critical")


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "risk": tuple(Category.__members__),
    "style": STYLES,
    "verb": ("first", "second", "any"),
}


def check(name: str, raw: Any) -> None:
    """Refuse an entry that cannot mean anything, saying which key and what to write instead."""
    at = f"commands.{name}"
    if not isinstance(raw, Mapping):
        raise ConfigError(at, raw, "is not a table", "Write `args`, `opts`, `risk` ... under it.")
    for key, value in raw.items():
        where = f"{at}.{key}"
        if key not in KEYS:
            keys = ", ".join(sorted(KEYS))
            raise ConfigError(where, value, "is not a key of a command table", f"Use one of: {keys}.")
        if key in _FLAGS and not isinstance(value, bool):
            raise ConfigError(where, value, "is not true or false", "Write true or false.")
        if key not in _FLAGS and not isinstance(value, str):
            raise ConfigError(where, value, "is not text", "Write a text, words separated by blanks.")
        if key in _CHOICES and value not in _CHOICES[key]:
            choices = ", ".join(_CHOICES[key])
            raise ConfigError(where, value, f"is not a {key}", f"Use one of: {choices}.")


def _expanded(raw: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """`"egrep, fgrep"` as two entries."""
    for names, entry in raw.items():
        for name in names.split(", ") if ", " in names else (names,):
            yield name, entry


@cache
def packaged() -> Tables:
    """The tables that ship with Checkrein."""
    commands: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(__file__).with_name("tables").glob("*.toml")):
        if not path.name.startswith("_"):
            commands.update(_expanded(tomllib.loads(path.read_text(encoding="utf-8"))))
    return Tables(commands)


@cache
def data(name: str) -> Mapping[str, Any]:
    """One of the other packaged tables: `_paths`, `_environment`, `_effects` ..."""
    path = Path(__file__).with_name("tables") / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
