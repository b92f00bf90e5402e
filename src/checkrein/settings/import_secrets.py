"""Plain secrets in an entry of another program's file: set apart, with references in their place.

`settings.server_imports` calls it; who adds the server keeps the values in the secret store.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from checkrein.settings.secrets import has_reference

IsSecret = Callable[[str, str], bool]
_BAD_IN_SECRET = re.compile(r"[^A-Za-z0-9_.-]+")


def secrets_apart(
    given: dict[str, Any], name: str, is_secret: IsSecret
) -> tuple[dict[str, Any], dict[str, str]]:
    """The entry of a server with references only, and the values they refer to by their names."""
    kept = dict(given)
    secrets: dict[str, str] = {}
    for key in ("env", "headers"):
        if isinstance(kept.get(key), dict):
            kept[key] = _without_secrets(kept[key], name, is_secret, secrets)
    client = kept.get("oauth")
    secret = client.get("clientSecret") if isinstance(client, dict) else None
    if isinstance(secret, str) and secret and not has_reference(secret):
        reference = _moved(secret_name(name, "clientSecret"), secret, secrets)
        kept["oauth"] = {**kept["oauth"], "clientSecret": reference}
    if isinstance(kept.get("args"), list):
        kept["args"] = _arguments(kept["args"], name, is_secret, secrets)
    return kept, secrets


def secret_name(server: str, key: str) -> str:
    """The name a server's secret is kept under."""
    return f"{server}.{_BAD_IN_SECRET.sub('-', key)}"[:96]


def _without_secrets(
    values: dict[str, Any], name: str, is_secret: IsSecret, secrets: dict[str, str]
) -> dict[str, Any]:
    """The values with every plain secret replaced by a reference to where it will be kept."""
    kept = dict(values)
    for key, value in values.items():
        if isinstance(value, str) and not has_reference(value) and is_secret(key, value):
            kept[key] = _moved(secret_name(name, key), value, secrets)
    return kept


def _arguments(args: list[Any], name: str, is_secret: IsSecret, secrets: dict[str, str]) -> list[Any]:
    kept = list(args)
    for at, value in enumerate(args):
        before = args[at - 1] if at else ""
        flag = before.lstrip("-") if isinstance(before, str) and before.startswith("-") else ""
        if isinstance(value, str) and not has_reference(value) and is_secret(flag or "argument", value):
            kept[at] = _moved(secret_name(name, f"argument-{at + 1}"), value, secrets)
    return kept


def _moved(secret: str, value: str, secrets: dict[str, str]) -> str:
    secrets[secret] = value
    return f"${{keyring:{secret}}}"
