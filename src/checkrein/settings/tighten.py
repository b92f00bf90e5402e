"""Lays an untrusted project's file over the user's settings, keeping only what restricts the agent further.

The agent can write the project, so until a person accepts the file it may tie knots, never loosen them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.settings import (
    SECTIONS,
    Door,
    Phase,
    ProfileSettings,
    Settings,
    keys_of,
    lineage,
)

# From the loosest answer to an unnamed call to the tightest.
_UNMATCHED = ("allow", "earned", "ask")
_OPEN_PHASES = ("building",)


class Tightened(msgspec.Struct, frozen=True):
    """The settings in force, the project's own restricting rules, and what was ignored."""

    settings: Settings
    rules: tuple[dict[str, Any], ...] = ()
    commands: dict[str, Any] = {}
    notices: tuple[str, ...] = ()


def tighten(base: Settings, wanted: Settings) -> Tightened:
    """`base` moved towards `wanted` (`base` with the project applied) only where that is tighter."""
    notices: list[str] = []
    changes: dict[str, Any] = {
        name: _section(name, getattr(base, name), getattr(wanted, name), notices) for name in SECTIONS
    }
    # Masking has no tighter side: more of it hides the agent's own commands from the record.
    changes["phases"] = {
        name: _phase(name, phase, wanted.phases[name], notices) for name, phase in base.phases.items()
    }
    changes["doors"] = {
        name: _door(name, door, wanted.doors[name], notices) for name, door in base.doors.items()
    }
    changes["profiles"] = _profiles(base.profiles, wanted.profiles, notices)
    rules = wanted.rules[len(base.rules) :]
    kept = tuple(rule for rule in rules if rule.get("action") in ("ask", "deny"))
    if len(kept) < len(rules):
        notices.append(f"{len(rules) - len(kept)} allow rule(s) ignored")
    # Which command tables tighten is the classifier's to say.
    commands = {name: raw for name, raw in wanted.commands.items() if base.commands.get(name) != raw}
    return Tightened(msgspec.structs.replace(base, **changes), kept, commands, tuple(notices))


def _section(
    section: str, base: msgspec.Struct, wanted: msgspec.Struct, notices: list[str]
) -> msgspec.Struct:
    changes = {}
    for name, (_, key) in keys_of(type(base)).items():
        old, new = getattr(base, name), getattr(wanted, name)
        if new == old:
            continue
        if (key.tighter == "lower" and new < old) or (key.tighter == "higher" and new > old):
            changes[name] = new
        else:
            notices.append(f"{section}.{name} = {new!r} ignored")
    return msgspec.structs.replace(base, **changes)


def _phase(name: str, base: Phase, wanted: Phase, notices: list[str]) -> Phase:
    """More is denied, less is listed; outside building a newly listed domain would open a door."""
    listed = {*base.allowed, *base.trust_gated, *base.denied}
    gates = (
        wanted.trust_gated if name in _OPEN_PHASES else tuple(d for d in wanted.trust_gated if d in listed)
    )
    result = Phase(
        allowed=tuple(d for d in base.allowed if d in {*wanted.allowed, *wanted.trust_gated}),
        denied=_union(base.denied, wanted.denied),
        trust_gated=_union(base.trust_gated, tuple(d for d in gates if d not in base.denied)),
    )
    if result != wanted and base != wanted:
        notices.append(f"phases.{name}: what it would let through ignored")
    return result


def _door(name: str, base: Door, wanted: Door, notices: list[str]) -> Door:
    unmatched = max(base.unmatched, wanted.unmatched, key=_UNMATCHED.index)
    if unmatched != wanted.unmatched or wanted.profile != base.profile:
        notices.append(f"doors.{name}: what it would let through ignored")
    return Door(unmatched=unmatched, profile=base.profile)


def _profiles(
    base: dict[str, ProfileSettings], wanted: dict[str, ProfileSettings], notices: list[str]
) -> dict[str, ProfileSettings]:
    result = dict(base)
    for name, profile in wanted.items():
        if profile == base.get(name):
            continue
        if name not in base:
            notices.append(f"profiles.{name}: a new profile ignored")
            continue
        old = base[name]
        ask = old.ask if _meets_allow_list(name, base) else _union(old.ask, profile.ask)
        result[name] = msgspec.structs.replace(old, ask=ask, deny=_union(old.deny, profile.deny))
        if result[name] != profile:
            notices.append(f"profiles.{name}: what it would let through ignored")
    return result


def _meets_allow_list(name: str, profiles: dict[str, ProfileSettings]) -> bool:
    """Whether an allow list and this profile's ask list ever judge together.

    What an allow list leaves out is denied, and an ask list is read before it: one more ask there is looser.
    """
    families = [lineage(each, profiles) for each in profiles]
    return any(
        profiles[member].allow is not None for family in families if name in family for member in family
    )


def _union(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return old + tuple(item for item in new if item not in old)
