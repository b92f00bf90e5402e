"""Git: configuration given on the command line, repositories elsewhere, revisions that name secret files.

The handler runs before the tables' subcommands and leaves the rest to them.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import network, path
from checkrein.classify.commands import handler, plain
from checkrein.classify.flags import options
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import EMPTY, HOLE, OPEN, Word

_TAME_CONFIG = re.compile(
    r"(?i)(?:color\.\w+(?:\.\w+)?|user\.(?:name|email)|core\.(?:quotepath|abbrev|autocrlf|safecrlf|ignorecase|commentchar)|advice\.\w+"
    r"|log\.\w+|diff\.(?:renames|renamelimit|context|algorithm|mnemonicprefix|noprefix|colormoved)|column\.\w+|status\.\w+|init\.defaultbranch"
    r"|commit\.gpgsign|tag\.gpgsign|grep\.\w+|blame\.\w+|versionsort\.\w+|safe\.directory|gc\.auto|merge\.conflictstyle|pull\.rebase|i18n\.\w+)"
    r"(?:=|$)"
)
_DRY_RUNS = frozenset("add clean commit fetch mv push rm".split())
_SHOWS = frozenset(
    "diff show blame annotate grep archive format-patch diff-tree diff-index diff-files whatchanged".split()
)
_PATCH = re.compile(r"-(?:[pucWL]|U\d)|--(?:patch|unified|cc|function-context|remerge-diff|diff-merges)")
_CONFIG_WRITES = frozenset(
    "--unset --unset-all --add --replace-all --rename-section --remove-section -e --edit".split()
)
_CONFIG_CHANGERS = ("edit", "set", "unset", "rename-section", "remove-section")
_CONFIG_SECRET = re.compile(r"(?i)credential|extraheader|token|passw|secret|sslkey|askpass|auth")
_TAME_PAGER = re.compile(r"(?i)(?:core\.pager|pager\.\w+)=(?:cat|less|false|)\Z")


@handler("git")
def git(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Global options; `-C` moves the rest of the command, `-c` is configuration."""
    parsed = parse(spec, words, stop=True)
    for given in parsed.given:
        if given.name == "-c" and given.value is not None:
            text = given.value.text
            if not given.value.literal or not (_TAME_CONFIG.match(text) or _TAME_PAGER.match(text)):
                shell.find(
                    "exec",
                    "hijack",
                    text[:80],
                    f"`git -c {given.value.shown}` changes what git runs or trusts",
                )
        elif given.name == "-C" and given.value is not None and given.value.literal:
            target = shell.places.place(given.value, shell.cwd)
            if target.scope != "home" and target.path not in (shell.places.project, shell.places.cwd):
                shell.find(
                    "exec",
                    "elsewhere",
                    target.path,
                    f"git runs with the configuration of {given.value.shown}",
                )
    if shell.cwd is not None and shell.places.place(Word(shell.cwd)).scope == "tmp" and parsed.operands:
        shell.find("exec", "elsewhere", shell.cwd, f"git runs with the configuration of {shell.cwd}")
    if _shows_help(parsed.operands):
        return Word(HOLE, OPEN)
    _secret_paths(shell, parsed.operands)
    return None


def _shows_help(operands: list[Word]) -> bool:
    """`--help` behind a flag that takes no value is the option itself, whatever else is on the line."""
    texts = [w.text for w in operands]
    return texts[-2:] == ["--dry-run", "--help"] and "--" not in texts and texts[0] in _DRY_RUNS


def _secret_paths(shell: Shell, operands: list[Word]) -> None:
    """Subcommands that print contents, given the path of a secret."""
    verb = operands[0].text if operands else ""
    patch = any(_PATCH.match(w.text) for w in operands)
    for word in operands[1:]:
        _revision_path(shell, word)
        shows = verb in _SHOWS or (verb in ("log", "stash", "reflog") and patch)
        if shows and shell.places.place(word, shell.cwd).scope == "secret":
            shell.find("read", "secret", word.shown, f"`git {verb}` shows {word.shown} (secret)")


def _revision_path(shell: Shell, word: Word) -> None:
    """`HEAD:.env` reads a secret out of history."""
    _, mark, name = word.text.partition(":")
    if mark and name and "//" not in word.text:
        place = shell.places.place(word._replace(text=name), shell.cwd)
        if place.scope == "secret":
            shell.find("read", "secret", word.shown, f"it reads {word.shown} (secret) out of history")


@handler("git-branch")
def branch(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`git branch` and `git tag` list without operands (or with listing options) and create with them."""
    parsed = parse(spec, words)
    listing = parsed.role("list") or any(g.name in spec.raw["needs"].split() for g in parsed.given)
    creating = spec.name == "git tag" and parsed.has(
        "-a", "-s", "-m", "-u", "--annotate", "--sign", "--message"
    )
    if (not parsed.operands or listing) and not creating:
        options(shell, spec, parsed)
        return Word(HOLE, OPEN)
    target = " ".join([spec.name, *(w.shown for w in parsed.operands[:1])])
    shell.find("git", "", target, f"`{target}` changes the repository")
    options(shell, spec, parsed)
    return EMPTY


@handler("git-config")
def config(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Reading configuration is harmless, setting it can make git run anything."""
    parsed = parse(spec, words)
    for given in parsed.given:
        if given.name in ("-f", "--file", "--blob") and given.value is not None:
            path(shell, "read", given.value)
    reading = any(
        g.name in ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch")
        for g in parsed.given
    )
    first = parsed.operands[0].text if parsed.operands else ""
    writing = parsed.has(*_CONFIG_WRITES) or (first in _CONFIG_CHANGERS and not reading)
    if not writing and (reading or first in ("list", "get") or len(parsed.operands) == 1):
        for word in parsed.operands:
            if _CONFIG_SECRET.search(word.text):
                shell.find("secret", "git", word.shown, "it reads stored credentials")
        return Word(HOLE, OPEN)
    names = [w.text for w in parsed.operands if "." in w.text][:1] or [first]
    tame = bool(_TAME_CONFIG.match(names[0])) and parsed.has("--global", "--system") is False
    shell.find(
        "git" if tame else "config",
        "" if tame else "git",
        names[0],
        f"it changes git's configuration ({names[0]})",
    )
    return EMPTY


@handler("reflog")
def reflog(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`git reflog HEAD~5` is `git log -g`; only named subcommands do something else."""
    if words and words[0].literal and shell.tables.spec(f"git reflog {words[0].text}") is not None:
        return None
    return plain(shell, spec, words, stdin)


@handler("remote-show")
def remote_show(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """With a name it asks the remote itself; without one, or with `-n`, it looks at what is known here."""
    parsed = parse(spec, words)
    if parsed.operands and not parsed.has("-n"):
        name = parsed.operands[0].shown
        shell.find("git-remote", "read", name, f"`git remote show {name}` talks to a remote repository")
    return None


@handler("other-vcs")
def other(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """An operand that is a URL is another machine, whatever the verb."""
    for word in words:
        if "://" in word.text and not word.text.startswith("-"):
            network(shell, spec, word)
    return None


@handler("gh")
def gh(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """INVARIANT: a subcommand gh does not ship is an extension and never low."""
    parsed = parse(spec, words, stop=True)
    if parsed.operands and parsed.operands[0].literal and parsed.operands[0].text not in spec.needs.split():
        name = parsed.operands[0].shown
        shell.find("exec", "unknown", f"gh {name}", f"`gh {name}` is an extension, or not something we know")
    return None


@handler("config-get")
def config_get(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Settings are low to read, unless the one that is asked for is a credential."""
    if any(_CONFIG_SECRET.search(w.text) for w in words):
        shell.find("secret", "service", spec.name, "it reads stored credentials")
    return None
