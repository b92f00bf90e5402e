"""What becomes of servers in other programs' files: the entry each would have here, or why it has none.

`cli.servers_import` and the console show the plan, then the authority adds. Nothing here reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from checkrein.errors import ConfigError
from checkrein.settings.import_placeholders import filled
from checkrein.settings.import_secrets import IsSecret, secrets_apart
from checkrein.settings.import_sources import Found, is_ours
from checkrein.settings.import_words import in_our_words
from checkrein.settings.secrets import has_reference
from checkrein.settings.servers import ServerSpec, check_name, entry, server_spec

State = Literal["new", "same", "ours", "clash", "broken"]
_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+|_{2,}")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of it: its entry, the values for the secret store, and what a person must know."""

    name: str
    was: str
    where: str
    state: State
    entry: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Item({self.name!r}, {self.state!r})"

    def shown(self) -> dict[str, Any]:
        """Fit to be read: of variables and headers only what are references."""
        hidden: dict[str, Any] = {
            key: {name: value if has_reference(value) else "(set)" for name, value in self.entry[key].items()}
            for key in ("env", "headers")
            if key in self.entry
        }
        given = self.entry.get("oauth")
        if isinstance(given, dict) and "clientSecret" in given:
            secret = given["clientSecret"]
            hidden["oauth"] = {**given, "clientSecret": secret if has_reference(secret) else "(set)"}
        return {
            "name": self.name,
            "was": self.was,
            "from": self.where,
            "state": self.state,
            "entry": {**self.entry, **hidden},
            "secrets": sorted(self.secrets),
            "needs": list(self.needs),
            "notes": list(self.notes),
        }


def plan(
    found: list[Found],
    existing: Mapping[str, ServerSpec],
    *,
    home: str,
    is_secret: IsSecret,
    rename: bool = False,
) -> list[Item]:
    """What would become of each; with `rename`, a name that is taken gets a number."""
    made: list[Item] = []
    taken = dict(existing)
    for each in found:
        item = _item(each, taken, home, is_secret, rename)
        made.append(item)
        if item.state == "new":
            taken[item.name] = server_spec(item.name, item.entry)
    return made


def _item(each: Found, taken: dict[str, ServerSpec], home: str, is_secret: IsSecret, rename: bool) -> Item:
    base = Item(name=plain_name(each.name), was=each.name, where=each.where, state="broken")
    if is_ours(each.name, each.raw):
        return _as(base, state="ours", notes=("It is our own entry.",))
    try:
        check_name(base.name)
        raw, notes = in_our_words(each.raw)
        name = base.name if not rename else _free(base.name, raw, each, taken, home, is_secret)
        spec, secrets, needs = _made(name, raw, each, home, is_secret)
    except ConfigError as error:
        return _as(base, notes=(str(error),))
    if name != each.name:
        notes.append(f"It is called {name} here.")
    item = _as(base, name=name, entry=entry(spec), secrets=secrets, needs=needs, notes=tuple(notes))
    other = next((known for known in taken.values() if known.name.casefold() == name.casefold()), None)
    if other is None:
        return _as(item, state="new")
    if other.fingerprint == spec.fingerprint:
        return _as(item, state="same", secrets={}, needs=(), notes=("It is there already.",))
    why = "Another server has this name; --rename gives it a new one."
    return _as(item, state="clash", notes=(*item.notes, why))


def _as(item: Item, **changes: Any) -> Item:
    return msgspec.structs.replace(item, **changes)


def _free(
    name: str, raw: dict[str, Any], each: Found, taken: dict[str, ServerSpec], home: str, is_secret: IsSecret
) -> str:
    """The name, or the first numbered one that is free or belongs to this very server."""
    known = {spec.name.casefold(): spec for spec in taken.values()}
    for number in range(1, len(known) + 2):
        tried = name if number == 1 else f"{name[: 31 - len(str(number))]}-{number}"
        other = known.get(tried.casefold())
        if other is None or other.fingerprint == _made(tried, raw, each, home, is_secret)[0].fingerprint:
            return tried
    raise AssertionError("one more name than there are servers is always free")  # pragma: no cover


def _made(
    name: str, raw: dict[str, Any], each: Found, home: str, is_secret: IsSecret
) -> tuple[ServerSpec, dict[str, str], tuple[str, ...]]:
    needs: list[str] = []
    given = filled(raw, name, each, home, needs)
    if each.folder and each.bundle is None and "command" in given:
        # A project's own server is started in the project there, and may rely on it.
        given.setdefault("cwd", each.folder)
    kept, secrets = secrets_apart(given, name, is_secret)
    return server_spec(name, kept), secrets, tuple(dict.fromkeys(needs))


def plain_name(name: str) -> str:
    """The nearest name that can be one of ours."""
    text = _BAD_IN_NAME.sub(lambda found: "_" if found[0].startswith("_") else "-", name)
    return text.strip("-_")[:32].strip("-_")
