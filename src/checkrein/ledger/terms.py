"""The terms a call is found by: what a person remembers of it. Pure."""

from __future__ import annotations

from typing import Any

REMEMBERED = ("session", "project", "tool", "decision", "domain")


def term(name: str, value: str) -> str:
    """A term the store can hold, also where a path is not valid Unicode."""
    return f"{name}:{value if value.isascii() else value.encode(errors='backslashreplace').decode()}"


def terms_of(data: dict[str, Any]) -> list[str]:
    """Every term of a decision."""
    plain = [term(name, data.get(name, "")) for name in REMEMBERED if name != "domain"]
    return plain + [term("domain", domain) for domain in data.get("domains", ())]
