"""Evaluation profiles in a codemode-bridge file, as text for our settings.

`cli.servers_import` shows it beside the servers of that file; a person puts it into config.toml.
"""

from __future__ import annotations

import json
from typing import Any

from checkrein.settings import Settings
from checkrein.settings.check import apply


def profiles_in(document: Any, source: str) -> str:
    """The `evaluation` section of a codemode-bridge file as text for config.toml; "" where there is none."""
    if not isinstance(document, dict) or "evaluation" not in document:
        return ""
    settings = apply(Settings(), {"evaluation": document["evaluation"]}, source)
    lines: list[str] = ["[evaluation]", "enabled = true", ""] if settings.evaluation.enabled else []
    for name, profile in settings.profiles.items():
        lines.append(f"[profiles.{name}]")
        plain = type(profile)()
        written = {key: getattr(profile, key) for key in profile.__struct_fields__}
        lines += [f"{key} = {_toml(each)}" for key, each in written.items() if each != getattr(plain, key)]
        lines.append("")
    if settings.doors["eval"].profile:
        lines += ["[doors.eval]", f"profile = {_toml(settings.doors['eval'].profile)}", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
