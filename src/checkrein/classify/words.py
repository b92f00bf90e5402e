"""Words: what a shell word is known to be once quotes, escapes, braces and variables are resolved.

Literal, a glob, open (unknown, but the user's own or found by a reader) or dynamic.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LITERAL, GLOB, OPEN, DYNAMIC = range(4)
SECRET, NETWORK, NAMES = 1, 2, 4
"""Taints: what the text behind a word was made from; NAMES are names of secret files."""

HOLE = "\uf8ff"
"""Stands in a word's text for a part nobody knows."""
SPLIT = "\uf8fe"
"""A place where bash splits an unquoted value into words."""
_QUOTED = 0xE000
_SPECIAL = frozenset("{},*?[]~!+@() \t\n-")
_BRACE = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_RANGE = re.compile(r"^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?$")
_MAX_BRACES = 64


class Word(NamedTuple):
    """One word of a command. `text` is exact for a literal, a pattern for a glob, and has holes otherwise."""

    text: str
    kind: int = LITERAL
    taint: int = 0
    quoted: bool = False

    @property
    def literal(self) -> bool:
        return self.kind == LITERAL

    @property
    def known(self) -> str:
        """The text before the first unknown part."""
        return self.text.partition(HOLE)[0]

    @property
    def shown(self) -> str:
        """The word as a person should read it."""
        text = self.text.replace(HOLE, "…")
        return text if len(text) <= 80 else f"{text[:79]}…"


_SECRET_NAME = re.compile(
    r"(?:^|[/\\.*?\s'\"])(?:env(?:\b|\*)|id_(?:rsa|dsa|ecdsa|ed25519)|pem\b|netrc|npmrc|pypirc|pgpass|ssh\b|aws\b|kube\b|gnupg)"
    r"|\.key\b|credentials|git-credentials|shadow"
)


def names_secrets(words: list[Word]) -> int:
    """NAMES when somebody looks for files that hold secrets (`find -name '.env*'`, `grep '\\.pem$'`)."""
    for word in words:
        text = word.text
        if any(mark in text for mark in (".", "id_", "credential", "shadow")) and _SECRET_NAME.search(text):
            return NAMES
    return 0


EMPTY = Word("")
UNKNOWN = Word(HOLE, DYNAMIC)


def shield(text: str) -> str:
    """Quoted text, with characters that would be special outside quotes put out of their reach."""
    if _SPECIAL.isdisjoint(text):
        return text
    return "".join(chr(_QUOTED + ord(c)) if c in _SPECIAL else c for c in text)


def unshield(text: str) -> str:
    if text.isascii():
        return text
    return "".join(chr(ord(c) - _QUOTED) if "\ue000" <= c < "\ue100" else c for c in text)


def is_glob(shielded: str) -> bool:
    return "*" in shielded or "?" in shielded or ("[" in shielded and "]" in shielded)


def braces(shielded: str) -> list[str] | None:
    """`a{b,c}` as `ab`, `ac`; None when there are too many to follow."""
    if "{" not in shielded:
        return [shielded]
    results: list[str] = []
    todo = [shielded]
    while todo:
        if len(todo) + len(results) > _MAX_BRACES:
            return None
        text = todo.pop(0)
        match = _BRACE.search(text)
        if match is None:
            results.append(text)
            continue
        inner = match.group()[1:-1]
        parts = inner.split(",") if "," in inner else _range(inner)
        if parts is None:
            results.append(text)
            continue
        if len(parts) > _MAX_BRACES:
            return None
        todo[:0] = [text[: match.start()] + part + text[match.end() :] for part in parts]
    return results


def _range(inner: str) -> list[str] | None:
    match = _RANGE.match(inner)
    if match is None:
        return None
    first, last, step = match.groups()
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        start, stop, by = int(first), int(last), abs(int(step or 1)) or 1
        width = max(len(first), len(last)) if first.startswith("0") or last.startswith("0") else 0
        if abs(stop - start) // by > _MAX_BRACES:
            return ["0"] * (_MAX_BRACES + 1)
        numbers = range(start, stop + 1, by) if start <= stop else range(start, stop - 1, -by)
        return [str(n).zfill(width) for n in numbers]
    if len(first) == len(last) == 1:
        low, high = sorted((ord(first), ord(last)))
        return [chr(c) for c in range(low, high + 1)]
    return None


def joined(words: list[Word]) -> Word:
    """Several words as one text, separated by blanks."""
    if len(words) == 1:
        return words[0]
    kind = max((w.kind for w in words), default=LITERAL)
    taint = 0
    for word in words:
        taint |= word.taint
    return Word(" ".join(w.text for w in words), kind, taint)
