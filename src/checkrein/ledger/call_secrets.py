"""The secrets of one call: found once in its arguments, then masked wherever its record names them.

`Redactor.find` makes them; `events`, answers, outcomes and labels apply them. Pure and linear-time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from checkrein.ledger.secrets import COMMON_WORDS, HOST, MASK, PROGRAM_NAMES

# Shorter values are masked where they were found and nowhere else: they would blank out ordinary words.
SHORTEST = 4
# From here on a value of mixed characters is masked inside longer words too (`-phunter2secret`).
_DISTINCT = 8
# Letters looked at, times values looked for, before a text is masked as a whole.
_MOST_WORK = 20_000_000
TOO_MANY = "[masked: too many secrets]"
# So much of a value's beginning counts as part of it where a quotation was cut off.
_BEGINNING = 6
# The classifier quotes at most so many letters of a word, and ends a cut quotation like this.
_LONGEST_QUOTED = 256
_CUT_OFF = re.compile(r"…|`|'|\"|$| \((?:low|medium|high|critical)\)")


class CallSecrets:
    """Values to mask in everything that is recorded about a call. Immutable."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values = frozenset(values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __or__(self, other: CallSecrets) -> CallSecrets:
        return CallSecrets(self.values | other.values) if other else self

    def text(self, text: str) -> str:
        """The text with every one of these values masked."""
        return self._replaced(text) if self.values else text

    def quoted(self, text: str) -> str:
        """The same for a sentence of ours, which may quote the beginning of a value and cut off the rest."""
        if not self.values:
            return text
        text = self._replaced(text)
        for secret in self._spread:
            text = _without_beginning(text, secret)
        return text

    def value(self, value: Any, apply: Callable[[str], str] | None = None) -> Any:
        """A value that is masked by the tables already, with these values masked in it as well."""
        if not self.values:
            return value
        apply = apply or self.text
        if isinstance(value, str):
            return apply(value)
        if isinstance(value, dict):
            copy: dict[Any, Any] = {}
            for key, item in value.items():
                name = apply(key) if isinstance(key, str) else key
                copy[f"{name} {len(copy)}" if name in copy else name] = self.value(item, apply)
            return copy
        if isinstance(value, list | tuple):
            items = [self.value(item, apply) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._known:
            return MASK
        return value

    @cached_property
    def _spread(self) -> tuple[str, ...]:
        """The values as records may spell them, longest first."""
        found = {each for value in self.values for each in _spellings(value) if _is_distinct(each)}
        return tuple(sorted(found, key=lambda each: (-len(each), each)))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._spread)

    def _replaced(self, text: str) -> str:
        if len(text) * len(self._spread) > _MOST_WORK:
            # INVARIANT: what holds more secrets than can be looked for is masked as a whole.
            return TOO_MANY
        there = [each for each in self._spread if each in text]
        return re.sub("|".join(map(_pattern, there)), MASK, text) if there else text


NO_SECRETS = CallSecrets()


def secrets_between(text: str, masked: str) -> Iterator[str]:
    """What stood in `text` where `masked`, the same text after one masking pass, holds a mask."""
    kept = masked.split(MASK)
    at = len(kept[0])
    for number, piece in enumerate(kept[1:], 1):
        end = text.find(piece, at) if number < len(kept) - 1 else len(text) - len(piece)
        if end < at:
            return
        # What an earlier pass masked stays masked, and is no value; nor is a name that stands before it.
        *before, last = text[at:end].split(MASK)
        yield from (part for part in (*before, last) if part and (part is last or not part.endswith("=")))
        at = end + len(piece)


def _spellings(value: str) -> Iterator[str]:
    """A value as it was written, as a shell and a URL read it, as JSON writes it, and its parts."""
    bare = re.sub(r"\\(.)", r"\1", re.sub(r"""(?<!\\)["']""", "", value))
    for each in dict.fromkeys((value, bare.removeprefix("$") if value.startswith("$'") else bare)):
        yield each
        yield " ".join(each.split())
        if "%" in each:
            yield unquote(each)
        if len(each) <= _LONGEST_QUOTED:
            yield quote(each, safe="", errors="surrogatepass")
        yield msgspec.json.encode(_encodable(each)).decode()[1:-1]
    if re.match(r"[\w.@-]{1,64}:\S", bare):
        yield bare.partition(":")[2]  # `user:password`
    if "\n" in value or "\\n" in value:
        yield from (line for line in re.split(r"\s+|\\n", value) if len(line) >= 2 * _DISTINCT)


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _is_distinct(value: str) -> bool:
    """Whether masking this value everywhere takes away no words but the secret."""
    lowered = value.lower()
    return (
        len(value) >= SHORTEST
        and not value.isspace()
        and MASK not in value
        and lowered not in COMMON_WORDS
        # INVARIANT: a program or a host keeps its name, though a call passes the same word as a secret.
        and lowered not in PROGRAM_NAMES
        and HOST.fullmatch(lowered) is None
    )


def _pattern(value: str) -> str:
    """Anywhere where the value is unmistakable, else as a word of its own or behind a flag's letter."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda c: not c.isalnum())
    if len(value) >= _DISTINCT and sum(any(map(kind, value)) for kind in kinds) >= 2:
        return re.escape(value)
    before = r"(?:(?<![^\W_])|(?<=[\s'\"]-[A-Za-z]))" if value[0].isalnum() else ""
    return f"{before}{re.escape(value)}" + (r"(?![^\W_])" if value[-1].isalnum() else "")


def _without_beginning(text: str, secret: str) -> str:
    """Mask a beginning of the secret where a quotation of it was cut off."""
    start, at = secret[:_BEGINNING], 0
    while (at := text.find(start, at)) >= 0:
        end, most = at + len(start), min(len(text), at + min(len(secret), _LONGEST_QUOTED))
        while end < most and text[end] == secret[end - at]:
            end += 1
        if _CUT_OFF.match(text, end):
            text = f"{text[:at]}{MASK}{text[end:]}"
            end = at + len(MASK)
        at = end
    return text
