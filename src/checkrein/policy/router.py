"""Which model a task deserves: pure `route()` and the escalation chain that ends at the user."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

import msgspec

from checkrein.call import ToolCall
from checkrein.settings import Model

MODULES_FOR_ARCHITECT = 3
LOW_TRUST = 0.4
PersonaName = Literal["reporter", "worker", "analyst", "architect"]


class Persona(msgspec.Struct, frozen=True):
    """Who does a task: a name, the model behind it, and the law it serves first."""

    name: PersonaName
    model: Literal["opus", "sonnet", "haiku"]
    law: str
    tasks: tuple[str, ...]


# In the order of escalation: who cannot solve it hands it to the next, the last one to the user.
PERSONAS: tuple[Persona, ...] = (
    Persona("reporter", "haiku", "third", ("report", "log_analysis", "summary")),
    Persona("worker", "haiku", "second and third", ("test", "search", "file")),
    Persona("analyst", "sonnet", "second", ("analysis", "design", "implementation", "review")),
    Persona("architect", "opus", "first", ("decision", "judgement", "debate")),
)
USER = "user"
_BY_NAME = {persona.name: persona for persona in PERSONAS}
_BY_TASK = {task: persona for persona in PERSONAS for task in persona.tasks}


class Route(msgspec.Struct, frozen=True):
    persona: Persona
    reason: str


def route(
    task: str = "",
    *,
    decision_points: int = 0,
    modules: int | None = None,
    trust: float | None = None,
    call: ToolCall | None = None,
    settings: Model | None = None,
) -> Route:
    """The persona for a task: many decisions or modules, or little trust, call for the architect."""
    settings = settings or Model()
    touched = modules if modules is not None else modules_of(call) if call else 0
    if decision_points >= settings.opus_aot_threshold:
        return Route(_BY_NAME["architect"], f"{decision_points} decision points")
    if touched >= MODULES_FOR_ARCHITECT:
        return Route(_BY_NAME["architect"], f"{touched} modules are touched")
    if trust is not None and trust < LOW_TRUST:
        return Route(_BY_NAME["architect"], f"trust {trust:.2f} is below {LOW_TRUST}")
    if task in _BY_TASK:
        return Route(_BY_TASK[task], f"the usual persona for {task}")
    return Route(_BY_NAME["analyst"], "a standard task")


def escalate(name: str) -> Persona | Literal["user"]:
    """Who takes over from a persona that cannot solve its task; nobody stands above the user."""
    names = [persona.name for persona in PERSONAS]
    if name not in names or name == names[-1]:
        return "user"
    return PERSONAS[names.index(name) + 1]


def modules_of(call: ToolCall) -> int:
    """How many folders the call's files lie in."""
    return len({str(PurePath(path).parent) for path in _paths(call.arguments)})


def _paths(value: Any, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [path for name, item in value.items() for path in _paths(item, str(name))]
    if isinstance(value, list | tuple):
        return [path for item in value for path in _paths(item, key)]
    is_path = isinstance(value, str) and (key.endswith(("path", "paths", "file", "files")))
    return [value] if is_path else []
