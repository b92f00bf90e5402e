"""An entry of another program's file in our words: keys renamed, units ours, and what is left out said.

`settings.server_imports` calls it first; placeholders and secrets in the values stay as they are.
"""

from __future__ import annotations

import json
from typing import Any

from checkrein.errors import ConfigError
from checkrein.settings import oauth
from checkrein.settings.servers import KEYS

# Other programs' words for what we have, too.
_RENAMED = {"serverUrl": "url", "httpUrl": "url", "environment": "env"}
_OAUTH_RENAMED = {"CLIENT_ID": "clientId", "CLIENT_SECRET": "clientSecret"}
_OAUTH_WORDS = (*oauth.KEYS, "scopes", "callbackPort")
# A time from here on can only have been meant in thousandths of a second.
_MILLISECONDS = 1_000


def in_our_words(raw: Any) -> tuple[dict[str, Any], list[str]]:
    """The entry with our keys, and what of it we have no place for."""
    if not isinstance(raw, dict):
        raise ConfigError("(entry)", None, "is not an object.", "Correct it there.")
    given: dict[str, Any] = {
        _RENAMED.get(str(key), str(key)): value
        for key, value in raw.items()
        if value not in (None, "", [], {})
    }
    notes: list[str] = []
    if given.pop("disabled", False) is True:
        given["enabled"] = False
        notes.append("It is switched off there, and here.")
    if given.get("type") == "local":
        del given["type"]
    if isinstance(given.get("command"), list):
        given["command"], *more = given["command"]
        listed = given.get("args")
        given["args"] = [*more, *(listed if isinstance(listed, list) else [])]
    if isinstance(given.get("env"), dict):
        given["env"] = {key: _text(value) for key, value in given["env"].items()}
    time = given.get("timeout")
    if isinstance(time, int | float) and time >= _MILLISECONDS:
        given["timeout"] = time / 1000
    given.pop("trusted", None)
    _take_sign_in(given, notes)
    left = sorted(key for key in given if key not in KEYS)
    if left:
        notes.append(f"Not taken over: {', '.join(left)}.")
    return {key: value for key, value in given.items() if key in KEYS}, notes


def _take_sign_in(given: dict[str, Any], notes: list[str]) -> None:
    """What the entry says of signing in, under one name and without what we have no place for."""
    found = given.pop("auth") if isinstance(given.get("auth"), dict) else given.get("oauth")
    if not isinstance(found, dict):
        return
    words = {_OAUTH_RENAMED.get(str(key), str(key)): value for key, value in found.items()}
    on = words.pop("enabled", True) is not False
    left = sorted(key for key in words if key not in _OAUTH_WORDS)
    if left:
        notes.append(f"Not taken over: {', '.join(f'oauth.{key}' for key in left)}.")
    given["oauth"] = on and ({key: words[key] for key in words if key in _OAUTH_WORDS} or True)


def _text(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return value
