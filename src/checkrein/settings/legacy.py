"""Reads an oath-harness `settings.json` and writes it as our settings file."""

from __future__ import annotations

import json
from typing import Any

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply

# Written by that harness only; nothing here does what they did.
_DROPPED = {"trust.recovery_boost_multiplier"}


def from_settings_json(content: bytes, source: str) -> tuple[str, list[str]]:
    """The TOML text and what was left out; a value we refuse is refused here too."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "(whole file)",
            None,
            f"is not valid JSON: {error}.",
            "Name an oath-harness settings.json.",
            source=source,
        ) from None
    left_out = []
    for dotted in sorted(_DROPPED):
        section, _, name = dotted.partition(".")
        if isinstance(raw, dict) and isinstance(raw.get(section), dict) and name in raw[section]:
            del raw[section][name]
            left_out.append(dotted)
    apply(Settings(), raw, source)
    return _as_toml(raw), left_out


def _as_toml(raw: dict[str, Any]) -> str:
    """Sections of plain values, which is all such a file can hold once it has been checked."""
    lines = []
    for section, values in raw.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        lines.append("")
    return "\n".join(lines)
