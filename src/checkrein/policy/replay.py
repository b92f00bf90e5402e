"""Trust as a what-if: a state and a list of events in, the state after them out. Reads and writes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from checkrein.errors import InputError
from checkrein.policy.trust import DAY, SeedTrust, TrustState
from checkrein.settings import Settings
from checkrein.settings.check import apply

_START = TrustState.__struct_fields__


def replay(line: Mapping[str, Any]) -> dict[str, Any]:
    """`config`, `start` and `events` (S, F, +N days, session) as the fields of the final state."""
    model = SeedTrust(apply(Settings(), {"trust": _mapping(line, "config")}, "config").trust)
    state, now = _start(_mapping(line, "start"), model)
    events = line.get("events", [])
    if not isinstance(events, list | str):
        raise InputError("`events` must be a list.")
    for event in events:
        if event == "S":
            state = model.succeeded(state, now)
        elif event == "F":
            state = model.failed(state, now)
        elif event == "session":
            state = model.session_started(state, now)
        else:
            now += _days(event) * DAY
    fields = msgspec.structs.asdict(state)
    fields.pop("last_operated_at")
    return fields | {"score": model.score(state, now)}


def _mapping(line: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = line.get(key) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"`{key}` must be an object.")
    return value


def _start(given: Mapping[str, Any], model: SeedTrust) -> tuple[TrustState, float]:
    """The first state and the time it is at: the moment of its last operation, unless that is not known."""
    for key in given:
        if key not in _START:
            raise InputError(f"`start.{key}` is not known.", remedy=f"Known: {', '.join(_START)}.")
    fields = {"score": model.settings.initial_score} | dict(given)
    at = _moment(fields.get("last_operated_at"))
    try:
        state = msgspec.convert(fields | {"last_operated_at": at}, TrustState)
    except msgspec.ValidationError as error:
        raise InputError(f"`start` is not a state: {error}") from None
    if not 0 <= state.score <= 1:
        raise InputError(f"`start.score` is {state.score!r}.", remedy="It must be from 0 to 1.")
    return state, at or 0.0


def _moment(value: Any) -> float | None:
    """Seconds; a symbolic start such as "T0" is the beginning of time."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError):
        return 0.0


def _days(event: Any) -> float:
    try:
        if isinstance(event, str) and event.startswith("+"):
            days = float(event[1:])
            if math.isfinite(days):
                return days
    except ValueError:
        pass
    raise InputError(f"{event!r} is not an event.", remedy='Use "S", "F", "session" or "+N" for N days.')
