"""`trust-scores.json`, v1 and v2, read and written. A score that cannot be right is reported, never used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from checkrein.call import GLOBAL_DOMAIN
from checkrein.errors import TrustFileError
from checkrein.policy.trust import TrustState, implausible

VERSION = "2"
# The highest score a file may start a domain with; more has to be earned.
_HIGHEST_START = 0.5


class TrustFile(msgspec.Struct, frozen=True):
    """What a file holds: usable states by domain, and why others are not usable."""

    states: dict[str, TrustState]
    bad: dict[str, str]
    version: str


def parse(content: bytes, now: float) -> TrustFile:
    """The states of a v1 or v2 file; raises TrustFileError when it is neither."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TrustFileError(f"This is not JSON: {error}.", remedy="Nothing was imported.") from None
    if not isinstance(raw, dict):
        raise TrustFileError("This is not a trust file.", remedy="Name a trust-scores.json.")
    if "version" not in raw:
        return _checked({GLOBAL_DOMAIN: _from_v1(raw, now)}, "1")
    if str(raw["version"]) != VERSION or not isinstance(raw.get("domains"), dict):
        raise TrustFileError(
            f"Version {raw['version']!r} is not known.", remedy="Versions 1 and 2 can be imported."
        )
    return _checked(raw["domains"], VERSION)


def _from_v1(raw: Mapping[str, Any], now: float) -> dict[str, Any]:
    """A v1 file holds one score for everything: it becomes `_global`."""
    counts = {name: raw.get(name, 0) for name in ("successes", "failures")}
    if "score" not in raw or not all(isinstance(value, int) for value in counts.values()):
        raise TrustFileError("This is neither a v1 nor a v2 trust file.", remedy="Nothing was imported.")
    total = sum(counts.values())
    moment = datetime.fromtimestamp(now, UTC).isoformat()
    return {"score": raw["score"], **counts, "total_operations": total, "last_operated_at": moment}


def _checked(domains: Mapping[str, Any], version: str) -> TrustFile:
    states: dict[str, TrustState] = {}
    bad: dict[str, str] = {}
    for domain in sorted(domains, key=lambda name: name != GLOBAL_DOMAIN):
        start = max(_HIGHEST_START, states[GLOBAL_DOMAIN].score if GLOBAL_DOMAIN in states else 0.0)
        try:
            state = _state(domains[domain])
            why = implausible(state, start)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            why = str(error)
        if why:
            bad[domain] = why
        else:
            states[domain] = state
    return TrustFile(states, bad, version)


def _state(raw: Any) -> TrustState:
    if not isinstance(raw, dict):
        raise TypeError("it is not an object")
    fields = {name: raw[name] for name in TrustState.__struct_fields__ if name in raw}
    moment = fields.get("last_operated_at")
    if moment is not None:
        fields["last_operated_at"] = datetime.fromisoformat(moment).astimezone().timestamp()
    return msgspec.convert(fields, TrustState)


def render(states: Mapping[str, TrustState], initial: float, now: float) -> dict[str, Any]:
    """A v2 file: `_global` is always there, as in a fresh installation."""
    everything = {GLOBAL_DOMAIN: TrustState(score=initial)} | dict(states)
    return {
        "version": VERSION,
        "updated_at": datetime.fromtimestamp(now, UTC).isoformat(),
        "global_operation_count": sum(
            s.total_operations for d, s in everything.items() if d != GLOBAL_DOMAIN
        ),
        "domains": {domain: _rendered(state) for domain, state in sorted(everything.items())},
    }


def _rendered(state: TrustState) -> dict[str, Any]:
    at = state.last_operated_at
    moment = None if at is None else datetime.fromtimestamp(at, UTC).isoformat()
    return msgspec.structs.asdict(state) | {"last_operated_at": moment}
