"""Servers on their way into the servers file: as a person writes them, or as other programs have them.

The console asks before the authority adds. Nothing here writes; values that look secret are set apart.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from checkrein.call import digest
from checkrein.doors.hooks import jsontext
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.redact import Redactor
from checkrein.settings.import_sources import SOURCES, Found, found_in, places
from checkrein.settings.reading import read
from checkrein.settings.server_imports import Item, plan
from checkrein.settings.servers import ServerSpec, check_name

_SECRET_NAME = re.compile(r"(?i)(?:^|[_-])(?:api_?key|key|token|secret|pass|password|passwd|pwd|pat|auth)$")
_HARMLESS = re.compile(r"(?i)true|false|yes|no|on|off|none|\d{1,6}|~?\.{0,2}/.*|https?://[^@?]*")


class Candidates(msgspec.Struct, frozen=True):
    """What was found in a program's files."""

    files: tuple[str, ...]
    items: tuple[Item, ...]


def looks_secret(name: str, value: str) -> bool:
    """Whether a value is better not kept in a plain file: by its name or by its shape."""
    given = {name: value}
    if not value or _HARMLESS.fullmatch(value):
        return False
    return bool(_SECRET_NAME.search(name)) or Redactor().value(given) != given


def candidates(source: str, project: str, existing: Mapping[str, ServerSpec]) -> Candidates:
    """The servers of a known program, also of one project of its user; names that are taken get a number."""
    if source not in SOURCES:
        raise NotFoundError("There is no such program.", remedy=f"One of: {', '.join(SOURCES)}.")
    home = Path.home()
    paths = dict.fromkeys(places(source, home, Path(project) if project else home))
    there = [(path, document) for path in paths if (document := document_of(path)) is not None]
    if not there:
        looked = ", ".join(map(str, paths))
        raise NotFoundError(f"There is no {looked}.", remedy="Choose another program, or a project.")
    found = [each for path, document in there for each in found_in(document, path)]
    items = plan(found, existing, home=str(home), is_secret=looks_secret, rename=True)
    return Candidates(tuple(str(path) for path, _ in there), tuple(items))


def mark(item: Item) -> str:
    """The same for as long as it would become the same server."""
    return digest([item.name, item.was, item.where, item.state, item.entry, sorted(item.secrets)])


def entry_of(name: str, raw: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the file will hold of a server a person wrote down, and the values that will not be in it."""
    check_name(name)
    (item,) = plan([Found(name, raw, "")], {}, home="", is_secret=looks_secret)
    if item.state != "new":
        raise InputError(" ".join(item.notes))
    # Only a person's own word makes a server trusted; no file of another program does.
    trusted = {"trusted": True} if raw.get("trusted") is True else {}
    return {**item.entry, **trusted}, dict(item.secrets)


def sign_in_of(
    *, client_id: str = "", client_secret: str = "", scope: str = "", redirect_uri: str = "", wanted: bool
) -> bool | dict[str, str]:
    """What an entry says of its sign-in: the client a person registered for it, or only that there is one."""
    client = {
        "clientId": client_id,
        "clientSecret": client_secret,
        "scope": scope,
        "redirectUri": redirect_uri,
    }
    return {key: value for key, value in client.items() if value} or wanted


def words_of(line: str) -> list[str]:
    """A command line as a shell would take it apart. Nothing is expanded but `~`."""
    try:
        words = shlex.split(line)
    except ValueError:
        raise InputError("The command line has a quote that does not end.") from None
    return [str(Path(each).expanduser()) if each == "~" or each.startswith("~/") else each for each in words]


def pairs_of(text: str, sign: str, what: str) -> dict[str, str]:
    """Lines like `NAME=value` as a table."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        name, given, value = line.partition(sign)
        if not given or not name.strip():
            # INVARIANT: what stands in the wrong place may be a secret and is not repeated.
            raise InputError(f"Line {number} of the {what} has no name and value.", remedy=f"NAME{sign}value")
        found[name.strip()] = value.strip()
    return found


def document_of(path: Path) -> Any:
    """What another program's file says; None where there is none."""
    content = read(path)
    if content is None:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text.", remedy="It must hold JSON, saved as UTF-8.") from None
    # Editors allow comments and commas where JSON has none.
    return jsontext.parse(text, source=str(path)) if text.strip() else {}
