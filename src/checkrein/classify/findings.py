"""What the walk finds: effects with their category and a sentence, kept per part of the line.

Filled by the shell walk and the tool judge, read by domains.py to make the Risk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from checkrein.call import Category, Effect, Reason


class Finding(NamedTuple):
    """One effect, how bad it is, and why in plain words."""

    effect: Effect
    category: Category
    why: str


class Part:
    """One command of a line, or a group of them."""

    __slots__ = ("children", "findings", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.findings: list[Finding] = []
        self.children: list[Part] = []

    def all(self) -> Iterator[Finding]:
        yield from self.findings
        for child in self.children:
            yield from child.all()

    def only(self, kind: str, scope: str) -> bool:
        """Whether every command in it does this and nothing else."""
        same = all((f.effect.kind, f.effect.scope) == (kind, scope) for f in self.findings)
        if self.children:
            return same and all(child.only(kind, scope) for child in self.children)
        return same and bool(self.findings)

    def leaves(self) -> int:
        return sum(child.leaves() for child in self.children) if self.children else 1

    @property
    def category(self) -> Category:
        return max((finding.category for finding in self.all()), default=Category.low)

    def reason(self, depth: int = 0) -> Reason:
        """The part as a sentence with the sentences that support it, worst first."""
        worst = sorted(self.findings, key=lambda finding: -finding.category)
        children = [Reason(f"{finding.why} ({finding.category.name})") for finding in _unique(worst)]
        if depth < 6:
            children += [child.reason(depth + 1) for child in self.children[:40]]
        if not children:
            return Reason(f"`{self.text}` only shows or computes something (low)")
        if len(children) == 1 and not self.children:
            return Reason(f"`{self.text}`: {children[0].text}")
        return Reason(f"`{self.text}` is {self.category.name}", tuple(children))


def _unique(findings: list[Finding]) -> list[Finding]:
    return list({finding.why: finding for finding in findings}.values())[:12]
