"""The terms a call is found by: what a person remembers of it. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

REMEMBERED = ("session", "project", "tool", "decision", "domain")


def term(name: str, value: str) -> str:
    """A term the store can hold, also where a path is not valid Unicode."""
    return f"{name}:{value if value.isascii() else value.encode(errors='backslashreplace').decode()}"


def terms_of(data: dict[str, Any]) -> list[str]:
    """Every term of a decision."""
    get = data.get
    plain = (get("session", ""), get("project", ""), get("tool", ""), get("decision", ""))
    return [*_terms(plain, tuple(get("domains", ())))]


@lru_cache(maxsize=1024)
def _terms(plain: tuple[str, ...], domains: tuple[str, ...]) -> tuple[str, ...]:
    """The calls of a session are mostly found by the same words."""
    known = (term(name, value) for name, value in zip(REMEMBERED, plain, strict=False))
    return (*known, *(term("domain", domain) for domain in domains))
