"""Reads an oath-harness `settings.json` and writes it as our settings file."""

from __future__ import annotations

import json
from typing import Any

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply

_SECTIONS = ("trust", "risk", "autonomy", "audit", "model")
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
    for section in raw:
        if section not in _SECTIONS:
            raise ConfigError(
                section, None, "is not part of such a file.", "Write it in ours instead.", source=source
            )
    return _as_toml(raw), left_out


def _as_toml(raw: dict[str, Any]) -> str:
    """Sections of plain values, which is all such a file can hold once it has been checked."""
    lines = []
    for section, values in raw.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_value(value)}" for name, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _value(value: Any) -> str:
    """A JSON value as TOML: the same, but for surrogate pairs and the raw DEL, which TOML refuses."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
