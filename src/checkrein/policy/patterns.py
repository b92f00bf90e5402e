"""Tool-name patterns: `*` matches any run of characters, everything else is literal; linear time."""

from __future__ import annotations

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """A pattern taken apart once: fixed start, fixed end, and the pieces between in order."""

    prefix: str
    pieces: tuple[str, ...]
    suffix: str
    wild: bool

    @property
    def is_prefix(self) -> bool:
        """`read_*`: the commonest shape, which an index can answer."""
        return self.wild and not self.pieces and not self.suffix

    def matches(self, name: str) -> bool:
        if not self.wild:
            return name == self.prefix
        start, end = len(self.prefix), len(name) - len(self.suffix)
        if start > end or not name.startswith(self.prefix) or not name.endswith(self.suffix):
            return False
        for piece in self.pieces:
            found = name.find(piece, start, end)
            if found < 0:
                return False
            start = found + len(piece)
        return True

    def covers(self, other: Pattern) -> bool:
        """Whether everything `other` matches, this matches too. May say no when unsure, never a wrong yes."""
        if not other.wild:
            return self.matches(other.prefix)
        if not self.wild:
            return False
        if not other.prefix.startswith(self.prefix) or not other.suffix.endswith(self.suffix):
            return False
        # Each of our pieces must lie inside one literal run of the other pattern, in order.
        runs = [other.prefix[len(self.prefix) :], *other.pieces]
        runs.append(other.suffix[: len(other.suffix) - len(self.suffix)])
        run, start = 0, 0
        for piece in self.pieces:
            while run < len(runs) and (found := runs[run].find(piece, start)) < 0:
                run, start = run + 1, 0
            if run == len(runs):
                return False
            start = found + len(piece)
        return True


def pattern(text: str) -> Pattern:
    parts = text.split("*")
    if len(parts) == 1:
        return Pattern(text, (), "", False)
    return Pattern(parts[0], tuple(piece for piece in parts[1:-1] if piece), parts[-1], True)
