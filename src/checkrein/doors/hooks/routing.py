"""Which model a sub-agent gets: the router's answer for a task, read from what the agent says about it."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal

import msgspec

from checkrein.call import ToolCall
from checkrein.policy.router import Persona, Route, escalate, route
from checkrein.settings import Model

# What sub-agents are called, and the kind of task that is.
_TASKS = {
    "search": ("explore", "search", "find", "locate", "grep"),
    "test": ("test", "tests", "pytest", "lint"),
    "report": ("report", "summarize", "summarise", "summary", "changelog"),
    "review": ("review", "reviewer", "audit"),
    "design": ("plan", "design", "architecture", "architect"),
}
_WORD = re.compile(r"[a-z]+")
# A decision is left to the sub-agent where the task asks or lists alternatives.
_DECISIONS = re.compile(r"\?|\b(?:decide|choose|whether|which of|either|trade-?offs?|compare)\b", re.I)
# One character class: hostile text costs its length, not its square.
_PATH = re.compile(r"[\w./-]+")
_LONGEST = 20_000


class Choice(msgspec.Struct, frozen=True):
    """Who takes the task: a persona, or the user when nobody is left above."""

    persona: Persona | Literal["user"]
    reason: str

    @property
    def model(self) -> str:
        return "" if isinstance(self.persona, str) else self.persona.model

    @property
    def name(self) -> str:
        return self.persona if isinstance(self.persona, str) else self.persona.name


def choose(call: ToolCall, trust: float | None, failures: int, settings: Model) -> Choice:
    """The routed persona, one step further up for every failure in a row."""
    routed = _route(call, trust, settings)
    persona: Persona | Literal["user"] = routed.persona
    for _ in range(failures):
        persona = "user" if isinstance(persona, str) else escalate(persona.name)
    if failures and persona != routed.persona:
        count = "failure" if failures == 1 else "failures"
        return Choice(persona, f"{failures} {count} in a row: handed up from {routed.persona.name}")
    return Choice(persona, routed.reason)


def _route(call: ToolCall, trust: float | None, settings: Model) -> Route:
    text = " ".join(
        value[:_LONGEST]
        for name in ("subagent_type", "agent_type", "description", "prompt")
        if isinstance(value := call.arguments.get(name), str)
    )
    return route(
        _task(text),
        decision_points=len(_DECISIONS.findall(text)),
        modules=len({str(PurePath(path).parent) for path in _PATH.findall(text) if "/" in path.strip("/")}),
        trust=trust,
        settings=settings,
    )


def _task(text: str) -> str:
    words = _WORD.findall(text.lower())[:40]
    for word in words:
        for task, names in _TASKS.items():
            if word in names:
                return task
    return ""
