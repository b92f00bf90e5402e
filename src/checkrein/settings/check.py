"""Lays one file's content over the settings so far, or says exactly what is wrong with it.

Used by `settings.sources` for every layer and by `explain` for the settings on a line.
"""

from __future__ import annotations

import difflib
import graphlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from checkrein.errors import ConfigError
from checkrein.settings import (
    DOMAINS,
    DOORS,
    PHASES,
    SECTIONS,
    Key,
    Phase,
    ProfileSettings,
    Settings,
    keys_of,
)
from checkrein.settings.addresses import fault_in_service, fault_in_webhook, masked

PROFILE_NAME = re.compile(r"[A-Za-z0-9_]{1,32}")
# The spelling of the gateway's first configuration files, still read.
EVALUATION_ALIAS = {
    "allowlist": "allow",
    "asklist": "ask",
    "denylist": "deny",
    "elicitationFallback": "fallback",
}
_OVERRIDE = re.compile(r"override|^(trust_?)?scores?$", re.IGNORECASE)
_CRITICAL = re.compile(r"critical", re.IGNORECASE)
_DEEPEST = 32


def apply(base: Settings, raw: Any, source: str = "") -> Settings:
    """`base` with `raw` laid over it; raises ConfigError naming key, value, reason and remedy."""
    try:
        table = _mapping("(top level)", raw)
        _readable(table)
        _no_override(table, "")
        changes: dict[str, Any] = {}
        for name, value in _with_profiles(table).items():
            changes[name] = _section(base, name, value)
        settings = msgspec.structs.replace(base, **changes)
        _consistent(settings)
        return settings
    except ConfigError as error:
        raise error.at(source) if source and not error.source else error from None


def _section(base: Settings, name: str, value: Any) -> Any:
    if name in SECTIONS:
        return _struct(getattr(base, name), name, value)
    if name == "phases":
        return base.phases | {k: _phase(base, k, v) for k, v in _named(name, value, PHASES).items()}
    if name == "doors":
        return base.doors | {k: _door(base, k, v) for k, v in _named(name, value, DOORS).items()}
    if name == "profiles":
        return base.profiles | {k: _profile(k, v) for k, v in _mapping(name, value).items()}
    if name == "commands":
        return base.commands | dict(_mapping(name, value))
    if name == "rules":
        if not isinstance(value, list) or not all(isinstance(rule, dict) for rule in value):
            raise ConfigError("rules", None, "must be a list of tables.", "Write each rule as [[rules]].")
        return base.rules + tuple(value)
    # A table is not shown: under a mistyped name it may hold secrets.
    shown = None if isinstance(value, dict) else value
    raise _unknown(name, shown, [*SECTIONS, "phases", "doors", "profiles", "rules", "commands"])


def _struct(base: msgspec.Struct, path: str, value: Any) -> Any:
    """A section with the given keys replaced, each checked against its type and bounds."""
    keys = keys_of(type(base))
    changes = {}
    secret = any(key.secret for _, key in keys.values())
    for name, item in _mapping(path, value, secret=secret).items():
        if name not in keys:
            # A mistyped name may stand before a secret.
            shown = None if secret else item
            raise _unknown(f"{path}.{name}", shown, [f"{path}.{known}" for known in keys])
        kind, key = keys[name]
        changes[name] = _leaf(f"{path}.{name}", item, kind, key)
    return msgspec.structs.replace(base, **changes)


def _leaf(path: str, value: Any, kind: Any, key: Key) -> Any:
    shown = None if key.secret else value
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ConfigError(path, value, "is not one of the choices.", f"Use {_either(get_args(kind))}.")
        return value
    if kind is bool and type(value) is bool:
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind is int and type(value) is int:
        return _bounded(path, value, key)
    if kind is float and type(value) in (int, float) and value == value:
        return float(_bounded(path, value, key))
    if kind not in (bool, int, float, str):
        return _texts(path, value, key)
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
    raise ConfigError(path, shown, f"must be {wanted}.", "Correct the value, without quotes for a number.")


def _bounded(path: str, value: float, key: Key) -> float:
    low, high = key.at_least, key.at_most
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (key.below is not None and value >= key.below)
    ):
        upper = (
            f"below {key.below:g}"
            if key.below is not None
            else f"at most {high:g}"
            if high is not None
            else ""
        )
        limits = " and ".join(
            part for part in (f"at least {low:g}" if low is not None else "", upper) if part
        )
        raise ConfigError(path, value, f"is out of bounds: {key.doc}", f"It must be {limits}.")
    return value


def _texts(path: str, value: Any, key: Key) -> tuple[str, ...]:
    if isinstance(value, str) and path.endswith(".extends"):
        return (value,)
    shown = None if key.secret else value
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ConfigError(path, shown, "must be a list of texts.", 'Write it like ["one", "two"].')
    if "" in value:
        raise ConfigError(path, shown, "holds an empty text, which can match nothing.", "Remove it.")
    for item in value if key.choices else ():
        if item not in key.choices:
            raise ConfigError(path, item, "is not one of the choices.", f"Use {_either(key.choices)}.")
    return tuple(value)


def _phase(base: Settings, name: str, value: Any) -> Phase:
    """A phase whose lists replace the old ones; a domain named anew leaves the lists that were not given."""
    path = f"phases.{name}"
    given = _mapping(path, value)
    written: Phase = _struct(Phase(), path, given)
    named = [d for key in given for d in getattr(written, key)]
    for domain in named:
        if domain not in DOMAINS and (not domain.startswith("mcp:") or "*" in domain):
            raise _unknown(path, domain, DOMAINS, typed=domain)
    for domain in set(written.denied) & {*written.allowed, *written.trust_gated}:
        raise ConfigError(path, domain, "is both denied and let through.", "Keep it in one of the lists.")
    lists = {
        key: getattr(written, key)
        if key in given
        else tuple(d for d in getattr(base.phases[name], key) if key != "denied" or d not in named)
        for key in ("allowed", "denied", "trust_gated")
    }
    if "denied" in given:
        lists["allowed"] = tuple(d for d in lists["allowed"] if d not in written.denied)
        lists["trust_gated"] = tuple(d for d in lists["trust_gated"] if d not in written.denied)
    return Phase(**lists)


def _door(base: Settings, name: str, value: Any) -> Any:
    door = _struct(base.doors[name], f"doors.{name}", value)
    if door.unmatched == "allow" and name != "eval":
        raise ConfigError(
            f"doors.{name}.unmatched",
            "allow",
            "would approve every call nobody wrote a rule for.",
            "Use `earned` or `ask`, or write allow rules for what you mean.",
        )
    return door


def _profile(name: str, value: Any) -> Any:
    if not PROFILE_NAME.fullmatch(name):
        raise ConfigError(
            f"profiles.{name}", None, "is not a usable name.", "Use up to 32 letters, digits and underscores."
        )
    return _struct(ProfileSettings(), f"profiles.{name}", value)


def _with_profiles(table: Mapping[str, Any]) -> dict[str, Any]:
    """What `evaluation` says of profiles, rewritten to `[profiles]` and `[doors.eval]`."""
    if "evaluation" not in table:
        return dict(table)
    rest = {key: value for key, value in table.items() if key != "evaluation"}
    evaluation = _mapping("evaluation", table["evaluation"])
    default = [name for name in ("defaultProfile", "default_profile") if name in evaluation]
    if len(default) > 1:
        raise ConfigError("evaluation.default_profile", None, "is given twice.", "Keep one of them.")
    own = {key: value for key, value in evaluation.items() if key not in ("profiles", *default)}
    rest["evaluation"] = {"enabled": True, **own} if evaluation else own
    if "profiles" in evaluation:
        given = _mapping("evaluation.profiles", evaluation["profiles"])
        renamed = {name: _renamed(f"evaluation.profiles.{name}", body) for name, body in given.items()}
        rest["profiles"] = renamed | dict(_mapping("profiles", rest.get("profiles", {})))
    if default:
        doors = dict(_mapping("doors", rest.get("doors", {})))
        doors["eval"] = {"profile": evaluation[default[0]]} | dict(
            _mapping("doors.eval", doors.get("eval", {}))
        )
        rest["doors"] = doors
    return rest


def _renamed(path: str, body: Any) -> dict[str, Any]:
    given = _mapping(path, body)
    renamed = {EVALUATION_ALIAS.get(key, key): item for key, item in given.items()}
    if len(renamed) < len(given):
        raise ConfigError(path, None, "gives one list under both of its names.", "Keep one of them.")
    return renamed


def _readable(value: Any, depth: int = 0) -> None:
    """Refuses what no settings need and what later steps could choke on instead of answering."""
    if depth > _DEEPEST:
        raise ConfigError("(whole file)", None, "is nested too deeply.", f"Use at most {_DEEPEST} levels.")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ConfigError("(whole file)", None, "holds a number beyond 64 bits.", "Write a smaller one.")
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _readable(item, depth + 1)


def _no_override(value: Any, path: str) -> None:
    """Refuses score overrides at any depth; argument conditions are not settings."""
    # INVARIANT: no file sets a score.
    if isinstance(value, list):
        for item in value:
            _no_override(item, path)
    if isinstance(value, dict):
        for key, item in value.items():
            where = f"{path}.{key}".lstrip(".")
            if _OVERRIDE.search(str(key)) and not path.startswith("profiles"):
                raise _unknown(where, item, ())
            if key != "when":
                _no_override(item, where)


def _consistent(settings: Settings) -> None:
    """What single keys cannot see: thresholds in order, no gate that is always open, no dangling names."""
    auto, human = settings.autonomy.auto_approve_threshold, settings.autonomy.human_required_threshold
    if auto <= human:
        raise ConfigError(
            "autonomy.auto_approve_threshold",
            auto,
            f"must be above autonomy.human_required_threshold ({human:g}).",
            "Raise the first or lower the second.",
        )
    # INVARIANT: no settings let a high-risk call of an agent with no trust at all run unasked, not even
    # the simplest call; autonomy never falls below 0, so a threshold of 0 would ask nobody.
    if max(0.0, 1 - 3 * settings.risk.lambda1) >= human:
        raise ConfigError(
            "risk.lambda1",
            settings.risk.lambda1,
            "would let high-risk calls of an agent without any trust run unasked.",
            "Raise risk.lambda1 or autonomy.human_required_threshold.",
        )
    for name, profile in settings.profiles.items():
        for parent in profile.extends:
            if parent not in settings.profiles:
                raise _unknown(f"profiles.{name}.extends", parent, settings.profiles, typed=parent)
    _no_cycle(settings.profiles)
    for key, find in (("urls", fault_in_service), ("webhook_urls", fault_in_webhook)):
        for url in getattr(settings.notify, key):
            if why := find(url):
                raise ConfigError(f"notify.{key}", None, f"{masked(url)} {why}.", "Correct or remove it.")
    for name, door in settings.doors.items():
        if door.profile and door.profile not in settings.profiles:
            raise _unknown(f"doors.{name}.profile", door.profile, settings.profiles, typed=door.profile)


def _no_cycle(profiles: Mapping[str, ProfileSettings]) -> None:
    try:
        graphlib.TopologicalSorter({name: each.extends for name, each in profiles.items()}).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1][::-1]
        raise ConfigError(
            f"profiles.{circle[0]}.extends",
            None,
            f"extends itself ({' > '.join(circle)}).",
            "Break the circle.",
        ) from None


def _named(path: str, value: Any, known: Iterable[str]) -> Mapping[str, Any]:
    table = _mapping(path, value)
    for name in table:
        if name not in known:
            raise _unknown(f"{path}.{name}", None, [f"{path}.{each}" for each in known])
    return table


def _mapping(path: str, value: Any, *, secret: bool = False) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(
            path, None if secret else value, "must be a table.", f"Write [{path}] and put its keys below."
        )
    return value


def _unknown(path: str, value: Any, known: Iterable[str], typed: str = "") -> ConfigError:
    """An unknown name: the two dangerous wishes are answered by name, typos with a suggestion."""
    last = path.rpartition(".")[2]
    if _OVERRIDE.search(last):
        return ConfigError(
            path,
            value,
            "trust scores are earned and cannot be set.",
            "Remove it; `checkrein trust import` brings scores from another installation.",
        )
    if _CRITICAL.search(last):
        return ConfigError(
            path,
            value,
            "critical risk is never approved automatically.",
            "Remove it; a person can release a single blocked call.",
        )
    near = difflib.get_close_matches(typed or path, list(known), n=1)
    hint = f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(sorted(known)) or 'none yet'}."
    return ConfigError(path, value, "is not known.", hint)


def _either(choices: Iterable[Any]) -> str:
    return " or ".join(f'"{choice}"' for choice in choices)
