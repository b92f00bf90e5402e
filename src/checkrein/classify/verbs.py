"""Service command lines (gh, kubectl, aws …): the verb says whether they look, change, pay or leak. Pure."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from checkrein.classify.arguments import away, delicate, is_url, network
from checkrein.classify.flags import OWN_ADDRESSES, first_word, options, unlisted
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, data, matches_verb
from checkrein.classify.words import DYNAMIC, GLOB, HOLE, LITERAL, OPEN, SECRET, UNKNOWN, Word

_SECRET_THING = re.compile(
    r"(?:^|[-_.:,/=])(?:secrets?|credentials?|passwords?|tokens?|authtoken|kubeconfig|connection-?strings?"
    r"|(?:private|access|api|account|storage)-?keys?|keys)(?:$|[-_.:,/=])|decryption|reveal|access-details"
    r"|auth_?token|env-file",
    re.IGNORECASE,
)
"""Things a reading verb should not show unasked, whatever the service calls the verb."""


_SETTINGS = frozenset("inspect describe config show env values environment get".split())
_PICKS_SECRETS = re.compile(
    r"\|\s*(?:[ef]?grep|rg|ag|ack)\s(?!\s*-\w*v)[^|;&\n]*?(?<![A-Za-z])"
    r"(?:pass(?:w(?:or)?d)?|secret|token|credential|(?:api|access|private)[_-]?key)s?(?![A-Za-z])",
    re.IGNORECASE,
)


def picks_secrets(shell: Shell, spec: Spec, words: list[Word]) -> None:
    """A service's settings, filtered for the words that secrets go by."""
    shown = [w.text for w in words[:8] if w.text in _SETTINGS]
    plain_get = shown == ["get"] and not any(w.text in ("yaml", "json", "-oyaml", "-ojson") for w in words)
    if shown and not plain_get and _PICKS_SECRETS.search(shell.source[:20_000]):
        shell.find("secret", "service", spec.name, f"it picks secrets out of what `{spec.name}` shows")


def asks_for_help(words: list[Word]) -> bool:
    """`--help` alone, or last behind operands only: elsewhere it may be another option's value."""
    literal = [word.text for word in words]
    if literal[:1] == ["--help"]:
        return True
    return literal[-1:] == ["--help"] and not any(text.startswith("-") for text in literal[:-1])


def verbs(shell: Shell, spec: Spec, words: list[Word]) -> Word:
    """A service's command line, judged by the first verb in it that says whether it reads or changes."""
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    if asks_for_help(words) or ([w.text for w in words[-1:]] == ["-h"] and words[-2:][0].text[:1] != "-"):
        return Word(HOLE, OPEN)
    target = f"{spec.name} {' '.join(w.shown for w in parsed.operands[:3])}"
    if parsed.role("dry"):
        shell.find("network", "service", target, f"`{target}` only says what it would do")
        return Word(HOLE, OPEN)
    values = _possible_values(spec, words)
    kind = _verb_kind(spec, [w.text for w in parsed.operands if w.kind in (LITERAL, GLOB)], values)
    named = [w.text for w in words[:12] if w.text not in spec.verbs[0]]
    if kind == "read" and any(map(_SECRET_THING.search, named)):
        kind = "secret"
    if kind == "critical":
        shell.find("message", "outside", target, f"`{target}` sends or pays")
    elif kind == "secret":
        shell.find("secret", "service", target, f"`{target}` shows or changes secrets")
        return Word(HOLE, DYNAMIC, SECRET)
    elif kind == "write":
        scope = spec.scope or ("service-write" if spec.effect in ("", "network") else "")
        shell.find(spec.effect or "network", scope, target, f"`{target}` changes something", spec.risk)
    elif kind == "read":
        service = spec.effect in ("", "network")
        shell.find("network" if service else "read", "service", target, f"`{target}` only looks")
        delicate(shell, parsed.operands)
        unlisted(shell, spec, parsed)
        for word in parsed.operands:
            named_thing(shell, spec, word)
        return Word(HOLE, OPEN)
    else:
        shell.find("exec", "unknown", target, f"`{target}` is not something we know")
    return UNKNOWN


def named_thing(shell: Shell, spec: Spec, word: Word) -> None:
    """What a reading verb is pointed at: an address is talked to, a package given as a file is evaluated."""
    text = word.text
    if is_url(text) and first_word(spec) not in OWN_ADDRESSES:
        network(shell, spec, word)
    elif spec.effect == "package" and text.startswith((".", "/", "~")) and not text.startswith("/nix/store/"):
        shell.find("exec", "elsewhere", word.shown, f"`{spec.name}` evaluates {word.shown}")
    elif (spec.effect, spec.scope) == ("read", "list") and away(shell, word):
        shell.find("exec", "elsewhere", word.shown, f"`{spec.name}` works on {word.shown}")


def _possible_values(spec: Spec, words: list[Word]) -> set[str]:
    """Words behind an option we do not know: they may be its value, so they are no proof of reading."""
    pairs = pairwise(words)
    return {
        b.text
        for a, b in pairs
        if a.text.startswith("-") and "=" not in a.text and a.text not in spec.options
    }


def _verb_kind(spec: Spec, operands: list[str], values: set[str]) -> str:
    """Which of the table's verbs comes first; wildcards count only when no named verb does."""
    reads, writes, secrets, criticals = spec.verbs
    while operands and operands[0] in spec.groups:
        operands = operands[1:]
    at = {"first": operands[:1], "second": operands[1:2], "any": operands[:4]}[spec.verb]
    named = tuple(verb for verb in writes if verb.strip("*-")) + change_verbs()
    for index, word in enumerate(at):
        if matches_verb(word, criticals):
            return "critical"
        if matches_verb(word, tuple(v for v in secrets if v != "*")):
            return "secret"
        if matches_verb(word, tuple(v for v in writes if v.strip("*-"))):
            return "write"
        if word not in values and matches_verb(word, reads):
            # `auth0 logs streams create`: what reads as a verb may be a thing, with its verb behind it.
            return "write" if spec.verb == "any" and set(at[index + 1 :]) & set(named) else "read"
        if matches_verb(word, named):
            return "write"
    if "*" in secrets:
        return "secret"
    return "write" if "*" in writes or any(matches_verb(w, writes) for w in at) else ""


@cache
def change_verbs() -> tuple[str, ...]:
    return tuple(data("_tools")["names"]["changes"])
