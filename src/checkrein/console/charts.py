"""Charts as numbers for an SVG: where a line goes, what its points say. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT, PADDING = 720, 170, 30


class Point(msgspec.Struct, frozen=True):
    """One move of a score: where it is drawn, how it came about."""

    x: float
    y: float
    kind: str
    title: str
    entry: str


class Chart(msgspec.Struct, frozen=True):
    """A line over time, oldest left; `grid` are the heights of the scores that matter."""

    points: tuple[Point, ...]
    grid: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def line(self) -> str:
        return " ".join(f"{each.x},{each.y}" for each in self.points)


def chart(moves: Sequence[tuple[float, str, str, str]], levels: Sequence[float] = ()) -> Chart:
    """From (score, kind, title, entry), oldest first. Steps are even: what moved trust counts, not when."""
    step = (WIDTH - 2 * PADDING) / max(1, len(moves) - 1)
    points = tuple(
        Point(round(PADDING + number * step, 1), _height(score), kind, title, entry)
        for number, (score, kind, title, entry) in enumerate(moves)
    )
    marks = sorted({0.0, 1.0, *levels})
    return Chart(points, tuple((_height(each), f"{each:g}") for each in marks))


def _height(score: float) -> float:
    return round(HEIGHT - PADDING - min(1.0, max(0.0, score)) * (HEIGHT - 2 * PADDING), 1)
