"""Compiles settings and stored rules into a Policy, or says which rule cannot be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from checkrein.errors import ConfigError, RuleError
from checkrein.policy import Policy
from checkrein.policy.profiles import Profile, profile
from checkrein.policy.rules import Rule, RuleSet, rule
from checkrein.settings import Settings

NO_RULES = RuleSet()


def file_rules(raw: Iterable[Mapping[str, Any]], source: str, origin: str = "file") -> list[Rule]:
    """The rules of a settings file, named by their place in it; `uses` needs a store and is refused."""
    rules = []
    for number, each in enumerate(raw, start=1):
        try:
            if each.get("uses") is not None:
                raise RuleError(
                    "`uses` cannot be counted in a file.", remedy="Add it with `checkrein rules add`."
                )
            made = rule(each, id=f"{source}#{number}", origin=origin)
            # INVARIANT: a project's rule never goes by the name of a person's; uses are counted by id.
            if origin == "project" and each.get("id"):
                made = msgspec.structs.replace(made, id=f"{source}#{made.id}")
            rules.append(made)
        except RuleError as error:
            raise ConfigError(f"rules[{number}]", None, error.message, error.remedy) from None
    seen: set[str] = set()
    for made in rules:
        if made.id in seen:
            raise ConfigError("rules", made.id, "is the id of two rules.", "Give each rule its own id.")
        seen.add(made.id)
    return rules


def compile_policy(
    settings: Settings,
    *,
    stored: Iterable[Rule] = (),
    project_rules: Iterable[Mapping[str, Any]] = (),
    door: str = "hooks",
    phase: str | None = "building",
    fault: str = "",
    named: str = "",
) -> Policy:
    """The policy of a door: file rules before stored ones on equal priority, then creation order.

    `named`: a profile in the place of the door's own.
    """
    if not fault and door not in settings.doors:
        fault = f"`{door}` is not a door; there are {', '.join(settings.doors)}."
    if not fault:
        try:
            rules = RuleSet([*file_rules(settings.rules, "file"), *stored])
            own = RuleSet(file_rules(project_rules, "project", "project"))
            chosen = settings.doors[door]
            name = named or chosen.profile
            # INVARIANT: a profile that is gone lets nothing pass.
            if name and name not in settings.profiles:
                raise ConfigError(f"profiles.{name}", None, "is not there any more.", "Write it again.")
            used: Profile | None = profile(name, settings.profiles) if name else None
            return Policy(settings, rules, own, used, phase, chosen.unmatched)
        except (ConfigError, KeyError) as error:
            fault = str(error)
    return Policy(settings, NO_RULES, NO_RULES, None, phase, "ask", fault)
