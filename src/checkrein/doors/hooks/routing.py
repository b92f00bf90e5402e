"""Which model a sub-agent gets: the router's answer for a task, read from what the agent says about it."""

from __future__ import annotations

from typing import Literal

import msgspec

from checkrein.call import ToolCall
from checkrein.policy.router import Persona, Route, escalate
from checkrein.policy.tasks import LONGEST, route_text
from checkrein.settings import Model


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
        value[:LONGEST]
        for name in ("subagent_type", "agent_type", "description", "prompt")
        if isinstance(value := call.arguments.get(name), str)
    )
    return route_text(text, trust, settings)
