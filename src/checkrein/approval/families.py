"""What an answer can be remembered for: exactly this call, its family, or the whole tool. Pure.

A family comes from what the classifier found, never from text alone: the commands, and every effect with its
scope. A call with one effect, scope or command more is outside it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkrein.call import Category, Effect, Risk, ToolCall, digest

What = Literal["exact", "family", "tool"]
# Above this a line runs code nobody can see into.
_OPAQUE = 0.8
# Effects that are alike wherever in their scope they happen; of all others the target counts too.
_ALIKE = frozenset({"read", "write", "test", "git"})
_PLACES = {
    "docs": "documents",
    "src": "source files",
    "tests": "tests",
    "tmp": "temporary files",
    "project": "files of the project",
}


class Family(msgspec.Struct, frozen=True):
    """Calls that do the same kinds of things. Kept in the store, so commands and effects are hashes."""

    commands: tuple[str, ...]
    effects: tuple[str, ...]
    category: int


class Offer(msgspec.Struct, frozen=True):
    """Something a person can choose to remember, and how it reads."""

    what: What
    label: str


def family_of(risk: Risk) -> Family | None:
    """The family of a call; None where only the exact call can be remembered."""
    # INVARIANT: what is high, or cannot be seen into, is remembered word for word only.
    if risk.category >= Category.high or risk.complexity >= _OPAQUE or not risk.effects:
        return None
    return Family(
        tuple(sorted({digest(command) for command in risk.commands})),
        tuple(sorted({digest(_sign(effect)) for effect in risk.effects})),
        int(risk.category),
    )


def covers(family: Family, risk: Risk) -> bool:
    """Whether a call belongs to the family."""
    found = family_of(risk)
    # INVARIANT: a remembered family never covers a call with an effect, a scope or a command more.
    return (
        found is not None
        and found.category <= family.category
        and set(found.commands) <= set(family.commands)
        and set(found.effects) <= set(family.effects)
    )


def offers(call: ToolCall, risk: Risk) -> list[Offer]:
    """What a person may choose from, narrowest first."""
    found = [Offer("exact", "exactly this call")]
    if family_of(risk) is not None:
        found.append(Offer("family", label_of(call, risk)))
    # A shell or a file tool as a whole would be everything; a tool of a server is one thing it does.
    if call.server is not None and risk.category < Category.high:
        found.append(Offer("tool", f"every call of `{call.name}` in this project"))
    return found


def label_of(call: ToolCall, risk: Risk) -> str:
    """`go test` in this project; Edit on source files in this project."""
    where = "in this project"
    if risk.commands:
        named = ", ".join(f"`{command}`" for command in risk.commands[:4])
        more = f" and {len(risk.commands) - 4} more" if len(risk.commands) > 4 else ""
        return f"{named}{more} {where}, with no other effect than now"
    places = sorted({_PLACES.get(effect.scope, effect.scope) for effect in risk.effects if effect.scope})
    return f"{call.name} on {', '.join(places)} {where}" if places else f"{call.name} {where}"


def _sign(effect: Effect) -> str:
    target = "" if effect.kind in _ALIKE else effect.target
    return f"{effect.kind} {effect.scope} {target}".strip()
