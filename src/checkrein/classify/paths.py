"""Where a path lies: project, docs, src, tests, tmp, home, system, secret, or where nobody may quietly write.

Lexical unless a resolver is passed in. Used for shell words and file tools alike.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from checkrein.classify.tables import data
from checkrein.classify.words import GLOB, HOLE, LITERAL, Word

ASSUMED_PROJECT = "/project"
"""Stands for the project when a call does not say where it runs."""


class Place(NamedTuple):
    """A path and the scope it lies in."""

    scope: str
    path: str


class Places:
    """The directories of one call, and what lies where."""

    def __init__(
        self,
        *,
        project: str,
        cwd: str,
        home: str,
        resolve: Callable[[str], str] | None,
        own: tuple[str, ...] = (),
    ) -> None:
        self.anchored = bool(project or cwd)
        self.cwd = cwd or project or ASSUMED_PROJECT
        self.project = (project or self.cwd).rstrip("/") or "/"
        self.home = home.rstrip("/") or "/root"
        self.resolve = resolve
        self.own = tuple(folder.rstrip("/") + "/" for folder in own)

    def absolute(self, text: str, cwd: str | None) -> str:
        if text.startswith("~"):
            text = self.home + text[1:] if text[1:2] in ("", "/") else f"/home/{text[1:]}"
        if not text.startswith("/"):
            text = f"{cwd or self.cwd}/{text}"
        path = os.path.normpath(text)
        return f"/{path.lstrip('/')}"

    def place(self, word: Word, cwd: str | None = None) -> Place:
        """The scope of a word used as a path; an unknown tail is judged by its known beginning."""
        if word.kind == LITERAL and HOLE not in word.text:
            return self._literal(word.text, cwd)
        if word.kind == GLOB and HOLE not in word.text:
            return self._glob(word.text, cwd)
        known = word.known
        if HOLE not in word.text:
            return self._literal(word.text, cwd)
        # An unset variable is nothing: `.e${x}nv` may well be `.env`.
        bare = self._literal(word.text.replace(HOLE, ""), cwd)
        if known and bare.scope in ("secret", "self", "self-secret", "agent-hooks"):
            return Place(bare.scope, word.shown)
        tail = word.text.rpartition(HOLE)[2]
        if tail and _SECRET_TAIL.search(tail):
            return Place("secret", word.shown)
        if not known:
            return Place("unknown", word.shown)
        # Below a known folder the name is open: `src/$F.py` lies in src.
        place = self._literal(f"{known}x" if known.endswith("/") else known, cwd)
        return Place(place.scope, word.shown)

    def _literal(self, text: str, cwd: str | None) -> Place:
        path = self.absolute(text[:4096].replace("\0", ""), cwd)
        # `/dev/fd/..` and `/proc/self/fd/..` are not where they seem: links lead through processes.
        scope = "secret" if _THROUGH_PROCESS.search(text) else self.scope(path)
        if self.resolve is not None and scope not in ("null", "device"):
            real = self.resolve(path)
            if real != path:
                # INVARIANT: a symlink is judged by the worse of where it is and where it leads
                scope = worse(scope, self.scope(real))
        return Place(scope, path)

    def _glob(self, text: str, cwd: str | None) -> Place:
        path = self.absolute(text[:1024], cwd)
        directory, _, name = path.rpartition("/")
        if any(_could_match(name, example) for example in _rules()["examples"]):
            return Place("secret", path)
        if "*" in directory or "?" in directory or "[" in directory:
            fixed = re.split(r"[*?\[]", directory, maxsplit=1)[0].rpartition("/")[0]
            if any(
                fnmatchcase(f"{d}/x", f"{path}*") or _shares(path, d, self.home)
                for d in _rules()["secret_dirs"]
            ):
                return Place("secret", path)
            return Place(self.scope(fixed or "/"), path)
        scope = self.scope(f"{directory}/{name.strip('*?') or 'x'}")
        if scope in ("project", "home", "system", "outside") and directory in ("", self.home):
            return Place("everything" if scope != "project" else scope, path)
        return Place(scope, path)

    def scope(self, path: str) -> str:
        """The scope of an absolute, normalised path; the most delicate one that fits."""
        path = _WORKTREE.sub("", path)
        fixed = _rules()["exact"].get(path)
        if fixed is not None:
            return str(fixed)
        if path.startswith("/dev/") and not _TEMPORARY.match(path):
            return "null" if _TERMINAL.match(path) else "device"
        rules = _rules()
        if self._is_self(path):
            return "self-secret" if path.rpartition("/")[2] in _OWN_SECRETS else "self"
        inside = path.startswith(f"{self.project}/") or path == self.project
        below_home = path[len(self.home) + 1 :] if path.startswith(f"{self.home}/") else None
        if below_home is None and (match := _OTHER_HOME.match(path)):
            below_home = path[match.end() :]
        name = path.rpartition("/")[2]
        if rules["secret"].search(f"{path}/") and not rules["public"].search(name):
            return "secret"
        if rules["vcs"].search(f"{path}/"):
            return "vcs-internal"
        if rules["hooks"].search(f"{path}/"):
            return "agent-hooks"
        if rules["agents"].search(f"{path}/"):
            return "agent-config"
        if path == "/" or path == self.home:
            return "everything"
        if inside or (not self.anchored and not _NOT_PROJECT.match(path)):
            return self._project_scope(path)
        if _TEMPORARY.match(path):
            return "tmp"
        if below_home is not None:
            return "home"
        if rules["system"].match(path):
            return "system"
        return "outside"

    def _project_scope(self, path: str) -> str:
        inner = path[len(self.project) + 1 :] if path.startswith(f"{self.project}/") else path.lstrip("/")
        pieces = inner.split("/")
        if pieces[0] in ("docs", "doc") and path.startswith(f"{self.project}/"):
            return "docs"
        if "src" in pieces[:-1]:
            return "src"
        if any(piece in ("tests", "test", "__tests__", "spec") for piece in pieces[:-1]):
            return "tests"
        return "project"

    def _is_self(self, path: str) -> bool:
        if self.own and f"{path}/".startswith(self.own):
            return True
        if "checkrein" not in path:
            return False
        name = path.rpartition("/")[2]
        if name == "checkrein.toml":
            return True
        return bool(_SELF.search(f"{path}/"))


_THROUGH_PROCESS = re.compile(r"/dev/fd/.*\.\.|/proc/.*(?:\.\.|/(?:root|cwd|environ|mem|fd)(?:/|$))")
_TERMINAL = re.compile(r"/dev/(null|zero|random|urandom|tty|stdin|stdout|stderr|full|ptmx|pts/\d+|fd/\d+)$")
_OTHER_HOME = re.compile(r"/(?:home|Users)/[^/]+/|/root/")
# Claude Code keeps worktrees in its settings folder; what lies in them is the project all the same.
_WORKTREE = re.compile(r"/\.claude/worktrees/[^/]+(?=/)")
# /dev/shm holds files in memory, no devices.
_TEMPORARY = re.compile(r"/(?:tmp|dev/shm|var/tmp|private/tmp|private/var/folders|var/folders)(?:/|$)")
_NOT_PROJECT = re.compile(
    r"/(?:tmp|var|etc|usr|bin|sbin|lib|lib64|boot|dev|proc|sys|run|root|home|Users|opt|System|Library|private)(?:/|$)"
)
_SELF = re.compile(
    r"/(?:\.local/state|\.config|state|run/user/\d+)/checkrein/|/checkrein-\d+/|/bin/checkrein(?:-hook)?/"
)
# The key that signs the record, what opens the door over HTTP, and the settings, which may hold tokens of
# channels (`checkrein config show` prints them masked).
_OWN_SECRETS = frozenset({"ledger.key", "http-token", "webhook.key", "passphrase", "config.toml"})
_SECRET_TAIL = re.compile(
    r"(?:^|/)(?:environ|\.env|\.netrc|\.npmrc|\.pypirc|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|credentials)$"
    r"|/\.(?:ssh|aws|gnupg|kube)(?:/|$)|\.(?:pem|key|p12|pfx|kdbx)$"
)
_ORDER: tuple[str, ...] = (
    "null",
    "tmp",
    "docs",
    "tests",
    "project",
    "src",
    "outside",
    "home",
    "system",
    "agent-config",
)
_ORDER += ("vcs-internal", "secret", "everything", "device", "agent-hooks", "self", "self-secret")


def holds_hooks(path: str) -> bool:
    """Whether it is a folder in which an agent looks for its hooks: `.codex`, `.github`."""
    return path.rpartition("/")[2] in _rules()["holders"]


def worse(one: str, other: str) -> str:
    return max(one, other, key=lambda scope: _ORDER.index(scope) if scope in _ORDER else 6)


def _could_match(pattern: str, example: str) -> bool:
    """Whether a glob that says anything at all could name a known secret."""
    if len(pattern.strip("*?")) < 2 and not pattern.startswith("."):
        return False
    if example.startswith(".") and not pattern.startswith((".", "[")):
        return False
    return fnmatchcase(example, pattern)


def _shares(path: str, directory: str, home: str) -> bool:
    target = f"{home}/{directory}"
    pieces, wanted = path.split("/"), target.split("/")
    if len(pieces) < len(wanted):
        return False
    pairs = list(zip(pieces, wanted, strict=False))
    if not all(fnmatchcase(want, piece) for piece, want in pairs):
        return False
    return any(piece == want and want.startswith(".") for piece, want in pairs) or any(
        piece not in ("*", "**") and piece != want for piece, want in pairs
    )


def _component(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


@cache
def _rules() -> dict[str, Any]:
    """The path tables as compiled patterns."""
    rows = data("_paths")

    def anywhere(patterns: list[str]) -> str:
        return "|".join(f"/{_component(p)}/" for p in patterns)

    def last(patterns: list[str]) -> str:
        return "|".join(f"/{_component(p)}/$" for p in patterns)

    secret = rows["secret"]
    return {
        "exact": {path: scope for scope, paths in rows["exact"].items() for path in paths},
        "secret": re.compile(f"{last(secret['names'])}|{anywhere(secret['directories'])}", re.IGNORECASE),
        "public": re.compile("|".join(f"^{_component(p)}$" for p in secret["public"])),
        "examples": tuple(secret["examples"]),
        "secret_dirs": tuple(secret["home"]),
        "vcs": re.compile(anywhere(rows["vcs-internal"]["paths"])),
        "hooks": re.compile(anywhere(rows["agent-hooks"]["paths"])),
        "agents": re.compile(anywhere(rows["agent-config"]["paths"])),
        "holders": {
            p.partition("/")[0] for p in rows["agent-hooks"]["paths"] if p.startswith(".") and "/" in p
        },
        "system": re.compile("|".join(re.escape(p) for p in rows["system"]["below"])),
    }


def is_system_secret(path: str) -> bool:
    """The few files of the machine that hold its passwords, known by their whole path."""
    return bool(_rules()["exact"].get(path) == "secret")
