"""Where in a text the words stand that patterns look for; `redact` reads closely only there. Pure.

Trying a pattern at every letter costs many times more than finding the words it cannot do without.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

# Letters and signs from rare to common, as results and commands hold them; others are rarer still.
_COMMON = "z$79/6q3|8524j=1x0-{bvky_gw.:fhmpucldaintsero "
_SHORT = (
    500  # Loading RE2 takes milliseconds: it waits for a longer text, for so many short ones, or for others.
)
_FEW = 200
_END = "\0"


class Hints:
    """Words in lower case, and which of them a text holds."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(filter(None, words)))
        # Under its rarest letter each: most texts hold few of those letters.
        gates: dict[str, list[str]] = {}
        for word in self.words:
            gates.setdefault(min(word, key=_COMMON.find), []).append(word)
        self._gates = tuple(gates.items())
        self._at_once: Any = None
        self._looked = 0

    def held(self, text: str) -> list[str]:
        """The words that stand somewhere in this lower-case text."""
        if self._at_once is None:
            self._looked += 1
            if len(text) > _SHORT or self._looked > _FEW or "re2" in sys.modules:
                self._at_once = _all_at_once(self.words)
        if self._at_once is not None:
            found = self._at_once.Match((text + _END).encode(errors="replace"))
            # INVARIANT: RE2 that ran out of memory finds nothing, not even the end; then each word is tried.
            if found:
                return [self.words[number] for number in found if number < len(self.words)]
        return [word for letter, words in self._gates if letter in text for word in words if word in text]

    def look(self, text: str) -> Seen:
        folded = fold(text)
        return Seen(text, folded, frozenset(self.held(folded)))


class Seen:
    """A text, and the words it holds as patterns that ignore case see them."""

    __slots__ = ("folded", "held", "text")

    def __init__(self, text: str, folded: str, held: frozenset[str]) -> None:
        self.text, self.folded, self.held = text, folded, held

    def places(self, words: Iterable[str]) -> list[int]:
        """Where these words stand, from first to last; only words that were looked for are found."""
        places: list[int] = []
        # Of many words few are held: those are gone through.
        held = self.held & words if isinstance(words, frozenset) else self.held.intersection(words)
        for word in held:
            at = self.folded.find(word)
            while at >= 0:
                places.append(at)
                at = self.folded.find(word, at + 1)
        places.sort()
        return places

    def replaced(self, pattern: str, becomes: Callable[[re.Match[str]], str], starts: Iterable[str]) -> str:
        """As `re.sub`, for a pattern whose every match begins with one of these words."""
        text, kept = self.text, 0
        pieces: list[str] = []
        if places := self.places(starts):
            match = re.compile(pattern).match
            for place in places:
                if place >= kept and (found := match(text, place)):
                    pieces += (text[kept:place], becomes(found))
                    kept = found.end()
        return "".join([*pieces, text[kept:]]) if pieces else text


def fold(text: str) -> str:
    """Lower case, letter for letter: every place stays, and what `(?i)` takes for an ASCII letter is one."""
    if folds_apart(text):
        text = text.replace("İ", "i").replace("ı", "i").replace("ſ", "s")
    return text.lower()


def folds_apart(text: str) -> bool:
    """Whether this text folded is not just this text in lower case."""
    return not text.isascii() and ("İ" in text or "ı" in text or "ſ" in text)


@lru_cache(8)
def _all_at_once(words: tuple[str, ...]) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem += 1_024 * sum(map(len, words))  # However many names the user adds.
    found = re2.Set.SearchSet(options)
    for word in (*words, _END):
        found.Add(re2.escape(word))
    found.Compile()
    return found
