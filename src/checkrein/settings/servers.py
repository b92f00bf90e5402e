"""The servers file: which MCP servers stand behind the gateway, and how each is reached.

The gateway reads it, `authority.server_changes` changes it. Nothing here starts a server or shows a secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from checkrein.call import digest
from checkrein.errors import ConfigError
from checkrein.settings import entries
from checkrein.settings import oauth as oauth_
from checkrein.settings.entries import document, no_twin, shown_name, text_of, wrong
from checkrein.settings.oauth import OAuthClient
from checkrein.settings.secrets import expanded, has_reference
from checkrein.settings.sources import config_dir

Share = Literal["auto", "shared", "client"]
Transport = Literal["", "stdio", "http", "sse"]
OURS = "checkrein"
_TOP = "mcpServers"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# The spellings of other programs' files.
_TYPES: dict[str, Transport] = {
    "": "",
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST_TIMEOUT = 86_400.0


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One server as the file names it. References stay references until `resolve`."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = {}
    inherit: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, str] = {}
    transport: Transport = ""
    # True: a client registers itself; else the one a person registered.
    oauth: bool | OAuthClient = False
    enabled: bool = True
    share: Share = "auto"
    trusted: bool = False
    timeout: float | None = None
    description: str = ""
    # The fingerprint of what this was resolved from, so that no secret is ever part of one.
    origin: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for as long as it is the same server; what only says how we treat it is left out."""
        if self.origin:
            return self.origin
        where = [self.command, self.args, self.cwd, self.env, self.inherit]
        return digest([*where, self.url, self.headers, self.transport, msgspec.to_builtins(self.oauth)])

    @property
    def client(self) -> OAuthClient:
        """Whom its provider knows us as; with nothing in it where we register ourselves."""
        return self.oauth if isinstance(self.oauth, OAuthClient) else OAuthClient()

    def __repr__(self) -> str:
        # INVARIANT: a resolved server shown by accident shows no secret.
        return f"ServerSpec({self.name!r})"


class ServersFile(msgspec.Struct, frozen=True):
    """The servers of the file; with a fault there are none."""

    servers: dict[str, ServerSpec] = {}
    fault: str = ""


_FIELDS = tuple(name for name in ServerSpec.__struct_fields__ if name not in ("name", "origin", "transport"))
KEYS = (*_FIELDS, "type")


def servers_file() -> Path:
    return config_dir() / "servers.json"


def stamp() -> tuple[int, ...]:
    """Other whenever one of the files a server is made of may be another."""
    return entries.stamp(servers_file())


def read_servers() -> ServersFile:
    """What the file says. Never raises: a file that cannot be used is a fault and offers nothing."""
    try:
        return ServersFile(parsed(text_of(servers_file()), str(servers_file())))
    except ConfigError as error:
        return ServersFile(fault=str(error))


def parsed(text: str, source: str) -> dict[str, ServerSpec]:
    """The servers in a text of such a file; raises ConfigError with the line of what is wrong."""
    found: dict[str, ServerSpec] = {}
    for name, raw in _servers(document(text, source), source).items():
        try:
            found[name] = server_spec(name, raw)
            no_twin(name, found)
        except ConfigError as error:
            raise error.at(f"{source}, line {_line(text, name, error.key)}") from None
    return found


def server_spec(name: str, raw: Any) -> ServerSpec:
    """One entry, checked; raises ConfigError naming key and reason."""
    check_name(name)
    if not isinstance(raw, dict):
        raise wrong(name, "", "must be an object.", 'Write {"command": "..."} or {"url": "..."}.')
    for key in raw:
        # A switch of other programs: taken for unknown, a server meant to be off would run.
        near = ["enabled"] if key == "disabled" else difflib.get_close_matches(key, KEYS, n=1, cutoff=0.75)
        if key not in KEYS and near:
            raise wrong(name, key, "is not known.", f"Did you mean `{near[0]}`?")
    taken = {key: raw[key] for key in _FIELDS if raw.get(key) is not None}
    if "oauth" in taken:
        taken["oauth"] = oauth_.in_our_words(name, taken["oauth"])
    try:
        spec = msgspec.convert({**taken, "name": name, "transport": _transport(name, raw)}, ServerSpec)
    except msgspec.ValidationError as error:
        raise _mistyped(name, str(error)) from None
    _check(spec)
    return spec


def check_name(name: str) -> None:
    """Names become part of tools' names, so they are plain, and never ours."""
    # INVARIANT: server and tool can be told apart in `server__tool`, whatever the tool is called.
    if not _NAME.fullmatch(name) or "__" in name or name.endswith("_"):
        raise ConfigError(
            shown_name(name),
            None,
            "cannot be a server's name.",
            "Use up to 32 letters, digits, `-` and single `_`, beginning with a letter or digit"
            " and not ending in `_`.",
        )
    if name.casefold() == OURS:
        raise ConfigError(name, None, "is our own name.", "Choose another.")


def entry(spec: ServerSpec) -> dict[str, Any]:
    """A server as the file holds it; what is as usual is not written."""
    found = entries.unusual(spec, ServerSpec(name=spec.name), _FIELDS)
    return {**({"type": spec.transport} if spec.transport else {}), **found}


def write_servers(servers: Mapping[str, ServerSpec] | Iterable[ServerSpec]) -> None:
    """The file with exactly these servers, whole or not at all. What we do not know in it stays."""
    wanted = list(servers.values() if isinstance(servers, Mapping) else servers)
    path = servers_file()
    text = text_of(path)
    # INVARIANT: a file we cannot read is never written over.
    parsed(text, str(path))
    before = document(text, str(path))
    old, new = _servers(before, str(path)), dict[str, Any]()
    for spec in wanted:
        made = entry(spec)
        server_spec(spec.name, made)
        new[spec.name] = {**made, **entries.unknown(old.get(spec.name, {}), KEYS)}
    entries.write(path, {**before, _TOP: new})


def resolve(spec: ServerSpec) -> ServerSpec:
    """The server with its references replaced; raises ConfigError naming the reference, never a value."""

    def filled(key: str, text: str) -> str:
        return expanded(text, f"{spec.name}.{key}")

    made = msgspec.structs.replace(
        spec,
        command=filled("command", spec.command),
        args=tuple(filled("args", each) for each in spec.args),
        cwd=_home(filled("cwd", spec.cwd)),
        env={key: filled(f"env.{key}", value) for key, value in spec.env.items()},
        url=filled("url", spec.url),
        headers={key: filled(f"headers.{key}", value) for key, value in spec.headers.items()},
        oauth=_resolved(spec.oauth, filled),
        origin=spec.fingerprint,
    )
    _check(made)
    return made


def _resolved(oauth: bool | OAuthClient, filled: Callable[[str, str], str]) -> bool | OAuthClient:
    if isinstance(oauth, bool):
        return oauth
    return msgspec.structs.replace(
        oauth,
        client_id=filled("oauth.clientId", oauth.client_id),
        client_secret=filled("oauth.clientSecret", oauth.client_secret),
        scope=filled("oauth.scope", oauth.scope),
    )


def _servers(top: dict[str, Any], source: str) -> dict[str, Any]:
    return entries.entries(top, _TOP, source, likeness=0.5)


def _check(spec: ServerSpec) -> None:
    """What types cannot say."""
    name = spec.name
    if bool(spec.command.strip()) == bool(spec.url):
        raise wrong(name, "", "needs a `command` or a `url`, and not both.", "Write one of them.")
    if spec.url:
        _check_address(spec)
    elif spec.headers or spec.oauth or spec.transport in ("http", "sse"):
        raise wrong(name, "", "has a `command`, so it has no address.", "Remove headers, oauth and type.")
    if spec.url and (spec.args or spec.env or spec.cwd or spec.inherit or spec.transport == "stdio"):
        raise wrong(name, "", "has a `url`, so no program is started.", "Remove args, env, cwd and inherit.")
    for key in (*spec.env, *spec.inherit):
        if not _VARIABLE.fullmatch(key):
            raise wrong(name, f"env.{shown_name(key)}", "cannot be a variable's name.", "Correct it.")
    for text in (spec.command, spec.cwd, *spec.args, *spec.env.values()):
        if "\x00" in text:
            raise wrong(name, "", "holds a zero byte.", "Remove it.")
    if spec.timeout is not None and not 0 < spec.timeout <= _LONGEST_TIMEOUT:
        raise wrong(name, "timeout", "must be above 0 and at most 86400 seconds.", "Correct it.")


def _check_address(spec: ServerSpec) -> None:
    name = spec.name
    oauth_.check(name, spec.client)
    for key, value in spec.headers.items():
        if not _HEADER.fullmatch(key):
            raise wrong(name, f"headers.{shown_name(key)}", "cannot be a header's name.", "Correct it.")
        # INVARIANT: no value can add a header of its own.
        if _CONTROL.search(value):
            raise wrong(name, f"headers.{key}", "holds a control character.", "Write it on one line.")
    if has_reference(spec.url):
        return
    try:
        parts = urlsplit(spec.url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise wrong(name, "url", "is not an address.", "Write https://HOST/PATH.") from None
    if parts.scheme not in ("http", "https") or not host or _CONTROL.search(spec.url) or " " in spec.url:
        raise wrong(name, "url", "must begin with https:// or http:// and a host.", "Correct it.")
    if parts.username is not None or parts.password is not None:
        raise wrong(name, "url", "holds a user name or password.", "Put it into `headers`.")
    if parts.scheme == "http" and host not in LOOPBACK and (spec.headers or spec.oauth):
        # INVARIANT: what lets us in somewhere never travels in the clear.
        raise wrong(name, "url", "would send its headers unencrypted.", "Use https://.")


def _transport(name: str, raw: dict[str, Any]) -> Transport:
    given = raw.get("type")
    if given is None:
        return ""
    if not isinstance(given, str) or given not in _TYPES:
        raise wrong(name, "type", "is not known.", 'Write "stdio", "http" or "sse", or leave it out.')
    return _TYPES[given]


def _mistyped(name: str, message: str) -> ConfigError:
    """The library's sentence without the value, in our words."""
    what, _, where = message.partition(" - at `$")
    key = where.rstrip("`").lstrip(".").replace("[...]", "")
    if key == "share":
        return wrong(name, key, "is not known.", f"Write {' or '.join(map(repr, get_args(Share)))}.")
    if key == "oauth":
        return wrong(name, key, "must be true, false or an object.", 'Write {"clientId": "..."}.')
    what = what.replace("`str`", "text").replace("`array`", "a list").replace("`object`", "an object")
    what = re.sub(r"^Expected (.*), got .*$", r"must be \1", what).replace("`", "")
    return wrong(name, key, f"{what}.", "Correct it.")


def _line(text: str, name: str, dotted: str) -> int:
    """The line of a server's key, or of its name; good enough to jump to."""
    at = text.find(f"{json.dumps(name, ensure_ascii=False)}", max(0, text.find(f'"{_TOP}"') + len(_TOP)))
    at = max(at, 0)
    for part in dotted.removeprefix(name).strip(".").split("."):
        key = part.partition("[")[0]
        inner = text.find(json.dumps(key, ensure_ascii=False), at + 1) if key else -1
        at = inner if inner >= 0 else at
    return text.count("\n", 0, at) + 1


def _home(folder: str) -> str:
    return str(Path(folder).expanduser()) if folder.startswith("~") else folder
