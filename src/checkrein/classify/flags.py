"""The options a command was given: what each does, and what one we have not listed may do.

Used by every command that is judged by its table entry.
"""

from __future__ import annotations

import re

from checkrein.call import Category
from checkrein.classify.arguments import SAYS, away, delicate, is_url, network, path, value
from checkrein.classify.options import Given, Parsed, telling
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import Word

_LOADED = (".so", ".dylib", ".dll", ".jar", ".sh", ".js", ".cjs", ".mjs", ".py", ".rb", ".pl", ".lua")
_FORMATS = frozenset(
    "json yaml yml table text wide tsv csv xml name plain sarif github html line lines short full pretty"
    " markdown md tree dot none off auto ndjson jsonl raw value id toml simple long compact grouped stylish"
    " unix tap spec verbose default human concise - /dev/stdout /dev/stderr /dev/null true false 0 1".split()
)
_FORMATTED = ("jsonpath", "custom-columns", "go-template", "template", "json", "yaml", "format")
_HOSTS = re.compile(r"(?:^|[-_.])(?:host|server|url|uri|endpoint|registry|proxy)s?$")
OWN_ADDRESSES = frozenset(("aws", "gcloud", "az", "gh", "glab", "git"))
"""Clients that only ever talk to their own service, whatever address an argument shows."""
_LEAVES_OUT = re.compile(
    r"exclude|ignore|skip|omit|without|(?:^|-)no[nt]?-|allow|deny|filter|grep|match|pattern"
)
"""Options that pick names, or leave some out: their value is not opened."""
_ELSEWHERE = frozenset(
    "-C --manifest-path --prefix --directory --dir --cwd --project --root --rootdir --package-path"
    " --working-dir --gemfile --project-dir --project-root --python".split()
)
"""Options that say where a command finds the project it works on."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://.*")


def first_word(spec: Spec) -> str:
    return spec.name.partition(" ")[0]


def options(shell: Shell, spec: Spec, parsed: Parsed) -> bool:
    """Effects of the options given; true when one of them makes the command only pretend."""
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `{spec.name}` is not an option we know")
    for given in parsed.given:
        role = given.role
        if role in ("text", "dry", "low", "inplace", "target"):
            if role == "target" and given.value is not None:
                path(shell, "write", given.value)
            elif role == "text" and given.value is not None:
                _setting(shell, spec, given.name, given.value)
            continue
        if given.value is None:
            _flag(shell, spec, given)
        else:
            value(shell, spec, role, given.value, given.name)
    dry = parsed.role("dry")
    if parsed.unlisted and (dry or quiet(spec)):
        unlisted(shell, spec, parsed)
    return dry


def _setting(shell: Shell, spec: Spec, name: str, word: Word) -> None:
    """A listed option's value is harmless, unless it leads out of the project or to another machine."""
    runs = "command*" in spec.args
    if (runs or (spec.effect and name in _ELSEWHERE)) and away(shell, word):
        shell.find("exec", "elsewhere", word.shown, f"`{name}` points `{spec.name}` at {word.shown}")
    elif spec.effect == "network" and is_url(word.text) and first_word(spec) not in OWN_ADDRESSES:
        network(shell, spec, word)


def quiet(spec: Spec) -> bool:
    """Whether a command is harmless as long as no option says otherwise."""
    harmless = spec.effect in ("", "read", "test") and not any(spec.verbs)
    return harmless or spec.scope in ("service", "list", "read")


def unlisted(shell: Shell, spec: Spec, parsed: Parsed) -> None:
    """Options an `open` entry does not list: harmless unless their name or their value says otherwise."""
    if first_word(spec) in OWN_ADDRESSES:
        return
    for name, how, word in parsed.unlisted:
        tells = telling(name)
        if word is not None and how != "apart" and not _LEAVES_OUT.search(name):
            delicate(shell, [word])
        if word is not None and (address := _ADDRESS.search(word.text)) and is_url(address.group()):
            network(shell, spec, word._replace(text=address.group()))
        elif word is not None and tells and _HOSTS.search(name):
            network(shell, spec, word)
        elif _loads(shell, spec, how, word) or (tells and not _a_format(word)):
            shell.find("exec", "option", name, f"`{name}` of `{spec.name}` may run, load or write something")


def _loads(shell: Shell, spec: Spec, how: str, word: Word | None) -> bool:
    if word is None:
        return False
    if how == "apart" and spec.args[0].rstrip("*") in ("read", "list", "pattern", "url-or-path"):
        return False
    return away(shell, word) or word.text.endswith(_LOADED)


def _a_format(word: Word | None) -> bool:
    return word is not None and (word.text in _FORMATS or word.text.partition("=")[0] in _FORMATTED)


def _flag(shell: Shell, spec: Spec, given: Given) -> None:
    role = given.role
    if role in Category.__members__:
        kind = spec.effect or "exec"
        why = f"`{spec.name} {given.name}` is an option to be careful with"
        shell.find(kind, spec.scope, f"{spec.name} {given.name}", why, Category[role])
    elif role in ("write", "delete"):
        shell.find(role, "project", f"{spec.name} {given.name}", f"`{spec.name} {given.name}` {role}s files")
    elif role in ("read", "list", "sql", "script", "code"):
        return
    else:
        kind = {"shell": "exec", "url": "network", "host": "network"}.get(role, role)
        shell.find(
            kind, "option", f"{spec.name} {given.name}", f"`{spec.name} {given.name}` {SAYS.get(kind, kind)}"
        )
