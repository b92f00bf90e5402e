"""Reads from a text what kind of task it asks for, and so who should take it. Pure: doors hand it in."""

from __future__ import annotations

import re
from pathlib import PurePath

from checkrein.policy.router import Route, route
from checkrein.settings import Model

# What tasks are called, and the kind of task that is.
_TASKS = {
    "search": ("explore", "search", "find", "locate", "grep"),
    "test": ("test", "tests", "pytest", "lint"),
    "report": ("report", "summarize", "summarise", "summary", "changelog"),
    "review": ("review", "reviewer", "audit"),
    "design": ("plan", "design", "architecture", "architect"),
}
_WORD = re.compile(r"[a-z]+")
# A decision is left to whoever takes it where the task asks or lists alternatives.
_DECISIONS = re.compile(r"\?|\b(?:decide|choose|whether|which of|either|trade-?offs?|compare)\b", re.I)
# One character class: hostile text costs its length, not its square.
_PATH = re.compile(r"[\w./-]+")
LONGEST = 20_000


def route_text(text: str, trust: float | None, settings: Model) -> Route:
    """The persona for what a text asks for."""
    return route(
        task_of(text),
        decision_points=len(_DECISIONS.findall(text)),
        modules=len({str(PurePath(path).parent) for path in _PATH.findall(text) if "/" in path.strip("/")}),
        trust=trust,
        settings=settings,
    )


def task_of(text: str) -> str:
    """The kind of task its first words name; nothing where they name none."""
    for word in _WORD.findall(text.lower())[:40]:
        for task, names in _TASKS.items():
            if word in names:
                return task
    return ""
