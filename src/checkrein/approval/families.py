"""What an answer can be remembered for: exactly this call, its family, or the whole tool. Pure.

A family comes from what the classifier found, never from text alone: the commands, and every effect with its
scope. A call with one effect, scope or command more is outside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from checkrein.call import Category, Effect, Risk, ToolCall, digest

What = Literal["exact", "family", "tool"]
# Above this a line runs code nobody can see into.
_OPAQUE = 0.8
# The classifier cuts targets and lists of effects at these lengths: beyond them it did not see all.
_LONGEST, _MOST = 200, 64
# Stands for what a shell line leaves open.
_HOLE = "…"
_ALIKE = ("git add", "git commit")
_LABEL, _NAMED = 100, 4
# Where one file is like another; of every other effect the target counts too.
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
    if risk.category >= Category.high or risk.complexity >= _OPAQUE or not _is_clear(risk):
        return None
    return Family(
        tuple(sorted({digest(command) for command in risk.commands})),
        tuple(sorted({digest(_sign(effect)) for effect in risk.effects})),
        int(risk.category),
    )


def _is_clear(risk: Risk) -> bool:
    """Whether the commands and effects say all there is to say."""
    if not 0 < len(risk.effects) < _MOST or any(_HOLE in command for command in risk.commands):
        return False
    if any(len(_counts(effect)) >= _LONGEST for effect in risk.effects):
        return False
    # A tool that runs something, or a server's of which we know the name alone, does what its input says.
    blind = any(effect.kind == "exec" for effect in risk.effects) or (
        len(risk.effects) == 1 and risk.effects[0].kind == "mcp"
    )
    return bool(risk.commands) or not blind


def covers(family: Family, risk: Risk) -> bool:
    """Whether a call belongs to the family."""
    return within(family, family_of(risk))


def within(family: Family, found: Family | None) -> bool:
    """Whether everything one family does the other does too."""
    # INVARIANT: a remembered family never covers a call with an effect, a scope or a command more.
    return (
        found is not None
        and found.category <= family.category
        and set(found.commands) <= set(family.commands)
        and set(found.effects) <= set(family.effects)
    )


def offers(call: ToolCall, risk: Risk, masked: Callable[[str], str] = str) -> list[Offer]:
    """What a person may choose from, narrowest first."""
    found = [Offer("exact", "exactly this call")]
    if family_of(risk) is not None:
        found.append(Offer("family", label_of(call, risk, masked)))
    # A shell or a file tool as a whole would be everything; a tool of a server is one thing it does.
    if call.server is not None and risk.category < Category.high:
        found.append(Offer("tool", f"every call of `{call.name}` in this project"))
    return found


def label_of(call: ToolCall, risk: Risk, masked: Callable[[str], str] = str) -> str:
    """`go test` in this project; Edit on source files in this project. Masked before it is cut."""
    if risk.commands:
        named = [f"`{_short(masked(command))}`" for command in risk.commands]
        written = _places(risk, ("write", "download"))
        writes = f", writing {_listed(written)}" if written else ""
        return f"{_listed(named)} in this project{writes}, with no other effect than now"
    on = _places(risk, ("read", "write")) or [_short(masked(effect.target)) for effect in risk.effects]
    return f"{call.name} on {_listed(list(dict.fromkeys(on)))} in this project"


def _places(risk: Risk, kinds: tuple[str, ...]) -> list[str]:
    return sorted({_PLACES[e.scope] for e in risk.effects if e.kind in kinds and e.scope in _PLACES})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[:_LABEL]} ..."


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _counts(effect: Effect) -> str:
    """What of an effect's target makes it another effect."""
    if effect.kind == "read" or (effect.kind == "write" and effect.scope in _PLACES):
        return ""
    # `git add src/a.py` is like `git add src/b.py`; `git checkout main` is not like `git checkout src/a.py`.
    subcommand = " ".join(effect.target.split()[:2])
    return subcommand if effect.kind == "git" and subcommand in _ALIKE else effect.target


def _sign(effect: Effect) -> str:
    return f"{effect.kind} {effect.scope} {_counts(effect)}".strip()
