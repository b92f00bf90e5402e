"""The machine's own tools, where a flag decides between showing and changing.

Handlers driven by the table's `needs`: the flags that only show.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import path
from checkrein.classify.commands import HANDLERS, handler, plain
from checkrein.classify.flags import options
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, matches_verb
from checkrein.classify.verbs import change_verbs
from checkrein.classify.words import HOLE, OPEN, UNKNOWN, Word


def _changes(shell: Shell, spec: Spec, words: list[Word], why: str = "changes something") -> Word:
    target = " ".join([spec.name, *(w.shown for w in words[:2])])
    shell.find(spec.effect or "exec", spec.scope, target, f"`{target}` {why}", spec.risk)
    return UNKNOWN


_ACTS = frozenset("flush block unblock up down on off modify mod reload append insert d a".split())
_SERVICE_ACTS = frozenset(
    "start stop restart reload force-reload try-restart condrestart enable disable add del delete remove on"
    " off kill up down once pause cont hup alarm interrupt term exit reset zap".split()
)


def _acts(spec: Spec, words: list[Word]) -> bool:
    """A verb that changes, wherever it stands among the operands."""
    return spec.effect == "config" and any(
        w.text in _ACTS or matches_verb(w.text, change_verbs()) for w in words if not w.text.startswith("-")
    )


def _shows(flag: str, quiet: set[str]) -> bool:
    """A flag that only shows, or a cluster of such flags (`-dvvv`)."""
    if flag in quiet:
        return True
    return flag[1:2] != "-" and len(flag) > 2 and all(f"-{letter}" in quiet for letter in flag[1:])


@handler("flags-read")
def flags_read(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """Harmless when it has flags and all of them are in `needs` (or, with `bare`, when it has none)."""
    quiet = set(spec.needs.split())
    flags = [w.text.partition("=")[0] for w in words if w.text.startswith("-")]
    operands = [w for w in words if not w.text.startswith("-")]
    if flags in (["--help"], ["--version"]) or "-stdout" in flags:
        return Word(HOLE, OPEN)
    if (
        (flags or (spec.raw.get("bare") and not spec.name.count(" ")))
        and all(_shows(f, quiet) for f in flags)
        and not _acts(spec, operands)
    ):
        for word in operands:
            path(shell, "list", word)
        return Word(HOLE, OPEN)
    if not words and stdin is None and spec.raw.get("bare", spec.effect in ("config", "secret")):
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words)


@handler("bare-list")
def bare_list(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Without operands it lists; with them it may change."""
    quiet = set(spec.needs.split())
    if spec.name == "crontab":
        if any(w.text == "-l" for w in words) and not any(w.text in ("-r", "-e", "-i") for w in words):
            return Word(HOLE, OPEN)
        return _changes(shell, spec, words, "changes what runs on a timer")
    if all(w.text in quiet or w.text in ("-v", "-l", "--json", "-h") for w in words):
        return Word(HOLE, OPEN)
    if any(spec.verbs) or shell.tables.has_subcommands(spec.name):
        return None
    return plain(shell, spec, words, stdin)


@handler("one-operand")
def one_operand(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    if sum(1 for w in words if not w.text.startswith("-")) > 1:
        shell.find("git", "", spec.name, f"`{spec.name}` changes a reference")
    return plain(shell, spec, words, stdin)


@handler("few-operands")
def few_operands(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """One name shows it; more words change it."""
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    if len(parsed.operands) <= 1:
        return Word(HOLE, OPEN)
    return _changes(shell, spec, parsed.operands)


@handler("git-checkout")
def git_checkout(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`git checkout -- FILE` throws changes away; `git checkout BRANCH` does not."""
    literal = [w.text for w in words]
    if "--" in literal or (spec.name == "git checkout" and "." in literal):
        shell.find("git", "history", "git checkout", "it throws away changes to files")
    return None


@handler("networksetup")
def networksetup(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    first = words[0].text if words else ""
    if re.match(r"^-(?:get|list|show|print|version|help|is)", first, re.IGNORECASE):
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "changes the network's settings")


@handler("scutil")
def scutil(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    if words and words[0].text == "--nc":
        return _changes(shell, spec, words, "shows or changes how this machine reaches private networks")
    if not words:
        return _changes(shell, spec, words, "opens a session that can change settings")
    return None


_DSCL_READS = frozenset(
    ("read", "list", "search", "readall", "readpl", "readpli", "cat", "diff", "ls", "help")
)
_DSCL_CHANGES = frozenset(("create", "delete", "append", "merge", "change", "passwd", "changei", "createpl"))


@handler("dscl")
def dscl(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    verbs = {w.text.lstrip("-").lower() for w in words[:7]}
    if verbs & _DSCL_READS and not verbs & _DSCL_CHANGES:
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "changes users or groups")


@handler("plutil")
def plutil(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    literal = [w.text for w in words]
    if set(literal) & {"-p", "-lint", "-help", "-type"} and "-o" not in literal:
        return Word(HOLE, OPEN)
    if "-extract" in literal and (
        "-o" not in literal or literal[literal.index("-o") + 1 : literal.index("-o") + 2] == ["-"]
    ):
        return Word(HOLE, OPEN)
    if (
        "-convert" in literal
        and "-o" in literal
        and literal[literal.index("-o") + 1 : literal.index("-o") + 2] == ["-"]
    ):
        return Word(HOLE, OPEN)
    if literal and not literal[0].startswith("-"):
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "rewrites property lists")


@handler("binhex")
def binhex(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    literal = {w.text for w in words}
    if literal & {"probe", "-h", "-V", "--help", "--version", "-c", "--pipe", "--to-stdout", "--from-stdin1"}:
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "writes files")


@handler("ip")
def ip(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """`ip OBJECT [VERB]`: show, list and get look; everything else changes."""
    parsed = parse(spec, words, stop=True)
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `ip` is not an option we know")
    named = [w.text for w in parsed.operands]
    if any(w.text in ("-b", "-batch", "-force") for w in words):
        return _changes(shell, spec, words)
    if not named or named[0] == "help" or len(named) == 1:
        return Word(HOLE, OPEN)
    reads = (
        "show",
        "list",
        "get",
        "help",
        "ls",
        "lst",
        "sh",
        "s",
        "l",
        "identify",
        "pids",
        "monitor",
        "save",
        "dev",
        "stats",
        "g",
    )
    if named[0].startswith("l") and named[1] == "s":  # `ip link s` is `set`; elsewhere `s` is `show`
        return _changes(shell, spec, words, "changes the network")
    if named[1] in reads or (
        len(named) > 2 and named[2] in ("list", "show") and named[1] in ("state", "policy")
    ):
        return Word(HOLE, OPEN)
    if named[0].startswith("mo") or (named[0].startswith("n") and named[1] == "pids"):
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "changes the network")


@handler("service")
def service(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    asked = {w.text for w in words}
    if asked & {"status", "--status-all", "list", "--list"} and not asked & _SERVICE_ACTS:
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "starts or stops services")


@handler("pacman")
def pacman(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    first = words[0].text if words else ""
    if re.match(r"^-(?:Q|Ss|Si|Sl|Sg|F|h|V|T)", first) and "y" not in first:
        return Word(HOLE, OPEN)
    return _changes(shell, spec, words, "installs or changes packages")


@handler("signals")
def signals(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`kill -l` lists signals when nothing but a signal follows; elsewhere `-l` is one flag among others."""
    listing = ("-l", "-L", "--list", "--table")
    if spec.name in ("kill", "killall") and words and words[0].text in listing and len(words) <= 2:
        return Word(HOLE, OPEN)
    return HANDLERS["kill"](shell, spec, [w for w in words if w.text not in listing], stdin)


_CLOCK = re.compile(r"\d{4,12}(?:\.\d\d)?")


@handler("date")
def date(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`date 010100002030` sets the clock; everything else formats a time."""
    parsed = parse(spec, words)
    if not parsed.has("-j") and any(_CLOCK.fullmatch(w.text) for w in parsed.operands):
        return _changes(shell, spec, words, "sets the clock")
    return None
