"""The MCP servers behind the gateway: a person adds, stops, accepts and removes them and keeps their secrets.

`cli.servers` and the console ask. Changes to the servers file are recorded; no value of a secret ever is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.authority.gateway import Gateway, gateway_of
from checkrein.authority.server_changes import change_servers, named, note_change, usable
from checkrein.authority.server_entries import referred, shown_entry, users_of
from checkrein.authority.tools_today import verdict_today
from checkrein.errors import InputError
from checkrein.settings.secrets import check_secret_name, list_secrets, remove_secret, set_secret
from checkrein.settings.servers import ServerSpec, read_servers, server_spec, servers_file

Facts = dict[str, Any]
MOST_LINES = 1_000


class _New(msgspec.Struct, forbid_unknown_fields=True):
    """A server to add; `secrets` are values its entry refers to."""

    name: str
    entry: dict[str, Any]
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"_New({self.name!r})"


class _Import(msgspec.Struct, forbid_unknown_fields=True):
    servers: list[_New]
    source: str = ""
    replace: bool = False


class _Pick(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    name: str
    hash: str


class _Picks(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    picks: list[_Pick]


class _Secret(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str

    def __repr__(self) -> str:
        return f"_Secret({self.name!r})"


def _looked_at(name: str | None) -> dict[str, ServerSpec]:
    """The servers, for who only looks; with a broken file the gateway knows best what there is."""
    found = read_servers()
    if name is not None and not found.fault:
        named(found.servers, name)
    return found.servers


@verb("upstream.list", person=False)
def list_(asked: Asked, params: Params) -> Facts:  # noqa: ARG001
    """Every server and how it is; what its file says is shown without values.

    While the file is broken, what was in it before stays in force and is listed.
    """
    found = read_servers()
    known = {str(each["name"]): each for each in gateway_of(asked).servers()} if asked.gateway else {}
    shown = []
    for name in sorted(known if found.fault else found.servers):
        spec = found.servers.get(name)
        more = {"entry": shown_entry(asked, spec)} if spec else {}
        shown.append({**known.get(name, {"name": name, "state": "stopped"}), **more})
    return {"file": str(servers_file()), "fault": found.fault, "servers": shown}


@verb("upstream.add", person=True)
def add(asked: Asked, params: Params) -> Facts:
    """{"name", "entry", "secrets"?}: one new server."""
    made = _added(asked, _Import([msgspec.convert(params, _New)]))
    return made[0]


@verb("upstream.import", person=True)
def import_(asked: Asked, params: Params) -> list[Facts]:
    """{"servers": [{"name", "entry", "secrets"?}], "source"?, "replace"?}: all of them or none."""
    return _added(asked, msgspec.convert(params, _Import))


def _added(asked: Asked, wanted: _Import) -> list[Facts]:
    if not wanted.servers:
        raise InputError("There is nothing to add.")
    made = [server_spec(each.name, each.entry) for each in wanted.servers]
    kept = {name: value for each in wanted.servers for name, value in each.secrets.items()}
    for name in kept:
        check_secret_name(name)

    def change(servers: dict[str, ServerSpec]) -> None:
        for spec in made:
            if spec.name in servers and not wanted.replace:
                raise InputError(
                    f"There is a server {spec.name!r} already.",
                    remedy=f"Choose another name, or `checkrein servers remove {spec.name}` first.",
                )
            servers[spec.name] = spec

    shown = [{"name": spec.name, **shown_entry(asked, spec)} for spec in made]
    data = {"change": "added", "servers": shown, "source": wanted.source, "secrets": sorted(kept)}
    change_servers(asked, data, change, kept)
    return shown


@verb("upstream.remove", person=True)
def remove(asked: Asked, params: Params) -> Facts:
    """{"name"}: the server leaves the file; secrets kept for it alone and its sign-in go with it."""
    name = msgspec.convert(params["name"], str)
    gone = named(usable(), name)

    def change(servers: dict[str, ServerSpec]) -> None:
        named(servers, name)
        del servers[name]

    change_servers(asked, {"change": "removed", "server": name}, change)
    still = {each for spec in usable().values() for each in referred(spec)}
    orphans = [each for each in referred(gone) if each.startswith(f"{name}.") and each not in still]
    removed = [each for each in orphans if each in list_secrets()]
    for each in removed:
        remove_secret(each)
    return {"name": name, "secrets": removed}


@verb("upstream.start", person=True)
def start(asked: Asked, params: Params) -> Facts:
    """{"name"}: run it now, and from now on."""
    return _switched(asked, msgspec.convert(params["name"], str), True)


@verb("upstream.stop", person=True)
def stop(asked: Asked, params: Params) -> Facts:
    """{"name"}: end it, and do not run it until somebody starts it again."""
    return _switched(asked, msgspec.convert(params["name"], str), False)


def _switched(asked: Asked, name: str, enabled: bool) -> Facts:
    running = gateway_of(asked)
    if named(usable(), name).enabled != enabled:

        def change(servers: dict[str, ServerSpec]) -> None:
            servers[name] = msgspec.structs.replace(named(servers, name), enabled=enabled)

        change_servers(asked, {"change": "started" if enabled else "stopped", "server": name}, change)
    if enabled:
        running.start(name)
    else:
        running.stop(name)
    return status_of(running, name)


@verb("upstream.restart", person=True)
def restart(asked: Asked, params: Params) -> Facts:
    """{"name"}"""
    name = msgspec.convert(params["name"], str)
    named(usable(), name)
    running = gateway_of(asked)
    running.reload()
    running.restart(name)
    return status_of(running, name)


@verb("upstream.sign_in", person=True)
def sign_in(asked: Asked, params: Params) -> Facts:
    """{"name"}: begin a sign-in; the answer says where the person has to go."""
    name = msgspec.convert(params["name"], str)
    named(usable(), name)
    return gateway_of(asked).sign_in(name, asked.actor)


# INVARIANT: no agent learns the address of a sign-in page, which would let it sign in as somebody else.
@verb("upstream.sign_in_state", person=True)
def sign_in_state(asked: Asked, params: Params) -> Facts:
    """{"name"}: how the last attempt does, and whether somebody is signed in."""
    name = msgspec.convert(params["name"], str)
    _looked_at(name)
    return gateway_of(asked).sign_in_state(name)


@verb("upstream.sign_out", person=True)
def sign_out(asked: Asked, params: Params) -> Facts:
    """{"name"}: forget what the sign-in left here; the server starts again without it."""
    name = msgspec.convert(params["name"], str)
    named(usable(), name)
    found = gateway_of(asked).sign_out(name)
    note_change(asked, {"change": "signed_out", "server": name})
    return found


def status_of(running: Gateway, name: str) -> Facts:
    return next((each for each in running.servers() if each.get("name") == name), {"name": name})


@verb("upstream.reload", person=True)
def reload(asked: Asked, params: Params) -> Facts:  # noqa: ARG001
    """Read the file again now."""
    usable()
    return gateway_of(asked).reload()


@verb("upstream.logs", person=True)
def logs(asked: Asked, params: Params) -> list[str]:
    """{"name", "count"?}: the last lines a server wrote, with what looks like a secret masked."""
    name = msgspec.convert(params["name"], str)
    count = min(max(1, msgspec.convert(params.get("count", 50), int)), MOST_LINES)
    _looked_at(name)
    redactor = asked.pipeline.policies.of("").redactor
    return [redactor.text(asked.pipeline.secrets.text(line)) for line in gateway_of(asked).logs(name, count)]


@verb("upstream.test", person=True)
def test(asked: Asked, params: Params) -> Facts:
    """{"name"}: start it apart from the others, see what it has, and end it."""
    spec = named(usable(), msgspec.convert(params["name"], str))
    return gateway_of(asked).test(spec)


@verb("upstream.browse", person=False)
def browse(asked: Asked, params: Params) -> list[Facts]:
    """{"name"?, "project"?}: tools of the running servers, each with what policy says about it today."""
    name = msgspec.convert(params.get("name"), str | None)
    project = msgspec.convert(params.get("project", ""), str)
    servers = _looked_at(name)
    found = gateway_of(asked).browse(name) if asked.gateway else []
    return [
        each if "verdict" in each else {**each, **verdict_today(asked, each, servers, project)}
        for each in found
    ]


@verb("upstream.review", person=False)
def review(asked: Asked, params: Params) -> list[Facts]:
    """{"name"?}: what servers say about themselves, and what nobody has accepted yet."""
    name = msgspec.convert(params.get("name"), str | None)
    _looked_at(name)
    return gateway_of(asked).review(name) if asked.gateway else []


@verb("upstream.accept", person=True)
def accept(asked: Asked, params: Params) -> list[Facts]:
    """{"name", "picks": [{"kind", "name", "hash"}]}: exactly these definitions; the rest of that server."""
    return _settled(asked, params, gateway_of(asked).accept)


@verb("upstream.refuse", person=True)
def refuse(asked: Asked, params: Params) -> list[Facts]:
    """{"name", "picks": [{"kind", "name", "hash"}]}"""
    return _settled(asked, params, gateway_of(asked).refuse)


def _settled(asked: Asked, params: Params, work: Callable[[str, list[Facts], str], Any]) -> list[Facts]:
    wanted = msgspec.convert(params, _Picks)
    named(usable(), wanted.name)
    # INVARIANT: nothing is accepted but what was named by its hash.
    if not wanted.picks or not all(each.hash for each in wanted.picks):
        raise InputError("Say which definitions.", remedy="See `checkrein servers review`.")
    work(wanted.name, [msgspec.structs.asdict(each) for each in wanted.picks], asked.actor)
    return gateway_of(asked).review(wanted.name)


@verb("upstream.set_secret", person=True)
def keep_secret(asked: Asked, params: Params) -> Facts:
    """{"name", "value"}: kept for servers' references; servers that use it read it at their next start."""
    try:
        wanted = msgspec.convert(params, _Secret)
    except msgspec.ValidationError:
        raise InputError("A secret is a name and a text.") from None
    place = set_secret(wanted.name, wanted.value)
    # INVARIANT: the record has a secret's name and never its value.
    note_change(asked, {"change": "secret_set", "secret": wanted.name, "place": place})
    return {"name": wanted.name, "place": place, "used_by": users_of(wanted.name)}


@verb("upstream.secrets", person=False)
def secrets(asked: Asked, params: Params) -> list[Facts]:  # noqa: ARG001
    """Names and places, and which servers refer to them; also names referred to that nobody has set."""
    places = list_secrets()
    wanted = {each for spec in read_servers().servers.values() for each in referred(spec)}
    names = sorted({*places, *wanted})
    return [{"name": each, "place": places.get(each, ""), "used_by": users_of(each)} for each in names]


@verb("upstream.remove_secret", person=True)
def forget_secret(asked: Asked, params: Params) -> Facts:
    """{"name"}"""
    name = msgspec.convert(params["name"], str)
    remove_secret(name)
    note_change(asked, {"change": "secret_removed", "secret": name})
    return {"name": name, "used_by": users_of(name)}
