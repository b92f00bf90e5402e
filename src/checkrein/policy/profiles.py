"""Profiles: named lists for a door. deny > ask > allow; what a given allow list leaves out is denied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from checkrein.call import ToolCall, Word, spelled
from checkrein.policy.patterns import Pattern, pattern
from checkrein.settings import ProfileSettings, lineage


class Profile(msgspec.Struct, frozen=True):
    """A profile with what it extends folded in; each allow list must be met."""

    name: str
    allow: tuple[tuple[Pattern, ...], ...] = ()
    ask: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    fallback: str = "deny"


def profile(name: str, profiles: Mapping[str, ProfileSettings]) -> Profile:
    """The named profile and all it extends: deny and ask lists add up, every allow list must be met."""
    family = [profiles[each] for each in lineage(name, profiles)]
    return Profile(
        name=name,
        allow=tuple(_patterns(each.allow) for each in family if each.allow is not None),
        ask=_patterns(text for each in family for text in each.ask),
        deny=_patterns(text for each in family for text in each.deny),
        fallback="allow" if all(each.fallback == "allow" for each in family) else "deny",
    )


def _patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(pattern(text) for text in texts)


def judge(profile: Profile, call: ToolCall) -> tuple[Word, str] | None:
    """The profile's word on a call and why; None when it does not mention it."""
    name = call.tool if call.server is None else f"{call.server}__{call.tool}"
    names = (name,) if call.server is None else _spellings(name)
    # INVARIANT: a name as scripts spell it refuses and asks too, and allows nothing: two tools may share it.
    if any(each.matches(one) for each in profile.deny for one in names):
        return "deny", f"`{name}` is on the deny list of profile {profile.name}"
    if any(each.matches(one) for each in profile.ask for one in names):
        return "ask", f"`{name}` is on the ask list of profile {profile.name}"
    if not profile.allow:
        return None
    if all(any(each.matches(name) for each in choices) for choices in profile.allow):
        return "allow", f"`{name}` is on the allow list of profile {profile.name}"
    return "deny", f"`{name}` is not on the allow list of profile {profile.name}"


def _spellings(name: str) -> tuple[str, ...]:
    """A server's tool by its own name, and as scripts and their lists have to spell it."""
    written = spelled(name)
    return (name,) if written == name else (name, written)
