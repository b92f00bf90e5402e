"""A JSON file of named entries that people write too: the servers file is one, the providers file another.

Read whole or refused with a reason; written whole or not at all.
"""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from checkrein.errors import ConfigError
from checkrein.settings.reading import read
from checkrein.settings.secrets import environment_file, put, secrets_file


def stamp(path: Path) -> tuple[int, ...]:
    """Other whenever one of the files its entries are made of may be another."""
    found: list[int] = []
    for each in (path, environment_file(), secrets_file()):
        try:
            status = each.stat()
            found += (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            found.append(0)
    return tuple(found)


def text_of(path: Path) -> str:
    """What the file holds, nothing where there is none."""
    content = read(path)
    if content is None:
        return ""
    status = path.stat()
    # INVARIANT: what another user could have written starts no program and says not where our keys go.
    if status.st_uid not in (os.geteuid(), 0) or status.st_mode & stat.S_IWOTH:
        raise ConfigError(
            str(path), None, "can be written by other users.", f"Run `chmod 600 {path}` and look at it."
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _broken("is not UTF-8 text", str(path)) from None


def document(text: str, source: str) -> dict[str, Any]:
    """A JSON object; what is not one is refused with its line, and so is a name written twice."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _broken(f"is not valid JSON ({error.msg})", f"{source}, line {error.lineno}") from None
    except (ValueError, RecursionError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _broken(why, source) from None
    if not isinstance(value, dict):
        raise _broken("is not an object", source)
    return value


def entries(top: dict[str, Any], key: str, source: str, *, likeness: float) -> dict[str, Any]:
    """The entries under their key; one that is nearly it is taken for a slip."""
    if key not in top and (near := difflib.get_close_matches(key, list(top), n=1, cutoff=likeness)):
        raise ConfigError(near[0], None, "is not known.", f"Did you mean `{key}`?", source=source)
    found = top.get(key, {})
    if not isinstance(found, dict):
        example = f'Write {{"{key}": {{"name": {{...}}}}}}.'
        raise ConfigError(key, None, "must be an object.", example, source=source)
    return found


def unusual(spec: msgspec.Struct, plain: msgspec.Struct, fields: Iterable[str]) -> dict[str, Any]:
    """The fields of an entry that are not as usual, as the file holds them."""
    found: dict[str, Any] = {}
    for key in fields:
        if (value := getattr(spec, key)) != getattr(plain, key):
            found[key] = list(value) if isinstance(value, tuple) else msgspec.to_builtins(value)
    return found


def unknown(entry: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What somebody else wrote into an entry; it stays when we write it."""
    return {key: value for key, value in entry.items() if key not in known}


def write(path: Path, top: dict[str, Any]) -> None:
    put(path, json.dumps(top, indent=2, ensure_ascii=False) + "\n")


def no_twin(name: str, found: Iterable[str]) -> None:
    if sum(each.casefold() == name.casefold() for each in found) > 1:
        raise ConfigError(name, None, "differs from another name in case only.", "Rename one of them.")


def wrong(name: str, key: str, reason: str, remedy: str) -> ConfigError:
    """What is wrong with a key of an entry, or with all of it."""
    return ConfigError(f"{name}.{key}" if key else name, None, reason, remedy)


def shown_name(name: str) -> str:
    """A name that may be anything, fit to be shown."""
    text = "".join(each if each.isprintable() else "?" for each in name)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _broken(why: str, source: str) -> ConfigError:
    return ConfigError("(whole file)", None, f"{why}.", "Correct it.", source=source)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names {shown_name(twice)!r} twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"holds {name}, which is no JSON")
