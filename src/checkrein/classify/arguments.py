"""One argument: the effect of a word in the role its command gives it (a path, a host, a script).

Called by commands.py and the handlers; it knows words, places and hosts, not commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from checkrein.call import Category
from checkrein.classify import arming, environment, hosts
from checkrein.classify.expand import SECRET_NAME
from checkrein.classify.paths import holds_hooks, is_system_secret
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, GLOB, HOLE, LITERAL, NAMES, NETWORK, OPEN, SECRET, UNKNOWN, Word

_PATHLIKE = re.compile(r"[/~]|^\.|\.[A-Za-z0-9]{1,6}$|^id_")

_DISK = re.compile(r"/dev/(?:r?disk|sd|hd|vd|xvd|nvme|mmcblk|md|dm-|mapper/|loop|mem|kmem|zd)")
"""Devices that hold every file there is, whatever its path."""
_DESCRIPTOR = re.compile(r"/dev/fd/[^/]*$")
SAYS = {
    "package": "installs or changes packages",
    "git": "changes the repository",
    "git-remote": "talks to a remote repository",
    "test": "runs the project's tests or checks",
    "process": "stops or changes processes",
    "privilege": "changes who may do what",
    "network": "talks to the network",
    "config": "changes settings",
    "exec": "runs code",
    "message": "sends something to people",
    "secret": "shows secrets",
}

FOREIGN = frozenset("tmp home outside system unknown secret null device everything".split())
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_PARTS = re.compile(r"[:=;,]")
_STORES = re.compile(r"^(?:file|s3|gs|az|abfss?|wasbs?|hdfs|dbfs|oss|cos)://", re.IGNORECASE)

Script = Callable[[Shell, Spec, Word], None]
SCRIPTS: dict[str, Script] = {}
"""Little languages in operands (sed, awk, jq, SQL); `script` itself picks by the command's `scope`."""


def outside(shell: Shell, word: Word) -> bool:
    """Whether a path is one the project does not control."""
    return shell.places.place(word, shell.cwd).scope in FOREIGN


def away(shell: Shell, word: Word) -> bool:
    """Whether a word is a path that leads out of the project, or carries one (`html:/etc`, `A=~/x`)."""
    if "/" not in word.text and "~" not in word.text and ".." not in word.text:
        return False
    return any(
        (part.startswith(("/", "~")) or ".." in part) and outside(shell, word._replace(text=part))
        for part in _PARTS.split(word.text)
    )


def is_url(text: str) -> bool:
    """An address of another machine, as opposed to a path or an object in a cloud's store."""
    return "://" in text and bool(_URL.match(text)) and not _STORES.match(text)


def delicate(shell: Shell, words: list[Word]) -> None:
    """Delicate paths among arguments whose meaning we do not know."""
    for word in words:
        for text in (word.text, word.text.partition("=")[2]):
            if not text or not _PATHLIKE.search(text):
                continue
            place = shell.places.place(word._replace(text=text), shell.cwd)
            if place.scope == "secret":
                shell.find("read", "secret", place.path, f"it may read {word.shown} (secret)")
            elif place.scope in ("self", "self-secret", "agent-hooks"):
                shell.find("write", place.scope, place.path, f"it may change {word.shown} ({place.scope})")


def shell_text(
    shell: Shell, word: Word, stdin: Word | None = None, arguments: list[Word] | None = None
) -> Word:
    """Text that is run by a shell."""
    if word.kind in (LITERAL, GLOB) and HOLE not in word.text:
        return shell.subshell(word.text, stdin, arguments)
    shell.opaque = True
    # INVARIANT: network output that is executed is critical
    scope = "flow" if word.taint & NETWORK else "shell"
    shell.find("exec", scope, word.shown, "it runs shell text nobody can know beforehand")
    if word.known.strip():
        shell.subshell(word.text.replace(HOLE, " $__unknown "), stdin, arguments)
    return UNKNOWN


def value(shell: Shell, spec: Spec, role: str, word: Word, option: str) -> None:
    """The effect of one word in one role."""
    if role in ("text", "pattern", "package"):
        if word.taint & SECRET:
            shell.find("read", "secret", word.shown, f"`{spec.name}` is given a secret")
    elif role in ("list", "read", "write", "delete"):
        path(shell, role, word)
    elif role == "url-or-path":
        network(shell, spec, word) if "://" in word.text else path(shell, "read", word)
    elif role == "move":
        path(shell, "read", word)
        path(shell, "write", word, away=True)
    elif role == "url" or role == "host":
        network(shell, spec, word)
    elif role == "shell":
        shell_text(shell, word)
    elif role in ("exec", "code", "config"):
        scope = "flow" if word.taint & NETWORK else "shell" if role == "exec" else "option"
        kind = "config" if role == "config" else "exec"
        what = option or spec.name
        shell.find(
            kind, scope, word.shown, f"`{what}` {'loads' if role == 'config' else 'runs'} {word.shown}"
        )
        delicate(shell, [word])
    elif role in Category.__members__:
        shell.find(
            spec.effect or "exec",
            spec.scope,
            option,
            f"`{spec.name} {option}` is to be careful with",
            Category[role],
        )
    elif role in ("env",):
        environment_word(shell, word)
    elif role in SCRIPTS:
        language = role if role != "script" else spec.scope
        SCRIPTS.get(language, SCRIPTS["text"])(shell, spec, word)
    elif role == "scriptfile":
        path(shell, "read", word)
        shell.find("exec", "script", word.shown, f"`{spec.name}` follows the script {word.shown}")
    else:
        shell.find(role, "option", word.shown, f"`{spec.name} {option}` {SAYS.get(role, role)}")


def environment_word(shell: Shell, word: Word) -> None:
    name, mark, text = word.text.partition("=")
    if mark:
        environment.judge(shell, name, word._replace(text=text), exported=True)


def path(shell: Shell, role: str, word: Word, *, away: bool = False) -> None:
    """A word used as a path; `away`: what is there is moved to another place."""
    if not word.text:
        return
    if word.kind == DYNAMIC and (not word.known or (role == "read" and HOLE in word.text)):
        if role == "list":
            return
        kind = "exec" if role == "read" else role
        shell.find(kind, "unknown", word.shown, f"which path it {role}s cannot be known")
        return
    if role == "read" and word.kind == OPEN and word.taint & NAMES:
        shell.find("read", "secret", word.shown, "it reads files whose names are names of secrets")
        return
    if role == "read" and not word.known and among_secrets(shell):
        shell.find("read", "secret", word.shown, "it reads files of a folder that holds secrets")
        return
    if word.text == "-" or (_DESCRIPTOR.match(word.text) and role in ("read", "list", "write")):
        return
    if is_url(word.text):
        where, host = hosts.scope_of(word, shell.tables.known_hosts)
        shell.find("network", where, host, f"it talks to {host} ({where})")
        return
    place = shell.places.place(word, shell.cwd)
    scope = place.scope
    # INVARIANT: who removes the folder around our hooks removes the hooks.
    if (away or role == "delete") and holds_hooks(place.path):
        scope = "agent-hooks"
    if role == "list" and scope == "secret" and is_system_secret(place.path):
        why = f"it looks at {word.shown}, which no work on a project needs"
        shell.find("read", "hunt", place.path, why, Category.medium)
        return
    if role == "list" or (scope == "null" and role != "delete"):
        shell.find("read", "list", place.path, f"it looks at {word.shown}")
        return
    if role == "read":
        if scope == "everything":
            scope = "secret"
        if scope == "device":
            scope = "secret" if _DISK.match(place.path) else "system"
    if (
        role == "write"
        and (armed := arming.what(place.path))
        and scope not in ("self", "self-secret", "agent-hooks", "vcs-internal")
    ):
        shell.find("write", "armed", place.path, f"it writes {word.shown}, which {armed}")
        return
    if role == "write" and scope == "everything":
        scope = "system"
    shell.find(role, scope, place.path, f"it {role}s {word.shown} ({scope})")


def members(shell: Shell, words: list[Word]) -> None:
    """Files shown straight out of an archive: nobody sees what lies in it, so they must be named."""
    if not words:
        shell.find("exec", "archive", "", "it prints all that lies in an archive, whatever that is")
    for word in words:
        if shell.places.place(word, shell.cwd).scope == "secret":
            shell.find("read", "secret", word.shown, f"it takes {word.shown} (secret) out of an archive")


def among_secrets(shell: Shell) -> bool:
    """Whether the line went into a folder that holds secrets."""
    return shell.cwd is not None and shell.places.place(Word("."), shell.cwd).scope == "secret"


def network(shell: Shell, spec: Spec, word: Word) -> None:
    if word.text.startswith("file:"):
        path(shell, "read", word._replace(text=re.sub(r"^file:/*", "/", word.text)))
        return
    scope, host = hosts.scope_of(word, shell.tables.known_hosts)
    shell.find("network", scope, host, f"`{spec.name}` talks to {host} ({scope})")


def secret_name(name: str) -> bool:
    return bool(SECRET_NAME.search(name))
