"""The MCP servers behind the gateway: a person adds, stops, accepts and removes them and keeps their secrets.

`cli.servers` and the console ask. Changes to the servers file are recorded; no value of a secret ever is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.call import ToolCall, reason_lines
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.settings.secrets import (
    check_secret_name,
    list_secrets,
    references,
    remove_secret,
    set_secret,
)
from checkrein.settings.servers import (
    ServersFile,
    ServerSpec,
    entry,
    read_servers,
    server_spec,
    servers_file,
    write_servers,
)

Facts = dict[str, Any]
MOST_LINES = 1_000
# One change to the file at a time: each begins with what the one before it left.
_CHANGING = threading.Lock()


class Gateway(Protocol):
    """The running gateway, as other threads see it. Each method waits for its answer.

    servers  one status per configured server: name, state, since, pid, connections, restarts, error, remedy,
             era, version, info, next_try; with them `offered` and `hidden`, how many tools of each.
    test     starts a server apart from the others and ends it: {"info", "version", "era", "seconds",
             "instructions", "tools": [{"name", "description", "flags"}]}; raises what is wrong.
    browse   what the running servers have: [{"server", "tool", "name", "state", "hidden", "definition",
             "flags", "annotations"}].
    review   what `Catalogue.review` says.
    sign_in  begins one and returns what `sign_in_state` does: {"name", "state", "url", "port", "reason",
             "remedy", "signed_in"}; state is none, waiting, done or failed, `url` where the person has to go.
    """

    def servers(self) -> list[Facts]: ...
    def start(self, name: str) -> Any: ...
    def stop(self, name: str) -> Any: ...
    def restart(self, name: str) -> Any: ...
    def sign_in(self, name: str, actor: str) -> Facts: ...
    def sign_in_state(self, name: str) -> Facts: ...
    def sign_out(self, name: str) -> Facts: ...
    def logs(self, name: str, count: int) -> list[str]: ...
    def test(self, spec: ServerSpec) -> Facts: ...
    def browse(self, name: str | None) -> list[Facts]: ...
    def review(self, name: str | None) -> list[Facts]: ...
    def accept(self, name: str, picks: list[Facts], actor: str) -> Any: ...
    def refuse(self, name: str, picks: list[Facts], actor: str) -> Any: ...
    def reload(self) -> Facts: ...
    def clients(self) -> list[Facts]: ...
    def revoke(self, id: str) -> Any: ...  # noqa: A002 - the word of the table
    def eval_run(self, source: str, language: str, profile: str, project: str, wait: float) -> Facts: ...
    def runs(self, limit: int) -> list[Facts]: ...
    def run(self, run_id: str) -> Facts: ...
    def resume(self, run_id: str, wait: float) -> Facts: ...
    def cancel(self, run_id: str, actor: str) -> Facts: ...


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


def _gateway(asked: Asked) -> Gateway:
    if asked.gateway is None:
        raise InputError("This needs the running server.", remedy="Run `checkrein up`.")
    return asked.gateway()


def _usable() -> dict[str, ServerSpec]:
    """The servers of a file that can be used; a broken one is not changed by us."""
    found = read_servers()
    if found.fault:
        raise InputError(found.fault, remedy="")
    return dict(found.servers)


def _named(servers: Mapping[str, ServerSpec], name: str) -> ServerSpec:
    if name not in servers:
        known = ", ".join(sorted(servers)) or "none yet"
        raise NotFoundError(f"There is no server {name!r}.", remedy=f"There are: {known}.")
    return servers[name]


def _looked_at(name: str | None) -> dict[str, ServerSpec]:
    """The servers, for who only looks; with a broken file the gateway knows best what there is."""
    found = read_servers()
    if name is not None and not found.fault:
        _named(found.servers, name)
    return found.servers


@verb("upstream.list", person=False)
def list_(asked: Asked, params: Params) -> Facts:  # noqa: ARG001
    """Every server and how it is; what its file says is shown without values.

    While the file is broken, what was in it before stays in force and is listed.
    """
    found = read_servers()
    known = {str(each["name"]): each for each in _gateway(asked).servers()} if asked.gateway else {}
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
    _change(asked, data, change, kept)
    return shown


@verb("upstream.remove", person=True)
def remove(asked: Asked, params: Params) -> Facts:
    """{"name"}: the server leaves the file; secrets kept for it alone and its sign-in go with it."""
    name = msgspec.convert(params["name"], str)
    gone = _named(_usable(), name)

    def change(servers: dict[str, ServerSpec]) -> None:
        _named(servers, name)
        del servers[name]

    _change(asked, {"change": "removed", "server": name}, change)
    still = {each for spec in _usable().values() for each in _references(spec)}
    orphans = [each for each in _references(gone) if each.startswith(f"{name}.") and each not in still]
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
    running = _gateway(asked)
    if _named(_usable(), name).enabled != enabled:

        def change(servers: dict[str, ServerSpec]) -> None:
            servers[name] = msgspec.structs.replace(_named(servers, name), enabled=enabled)

        _change(asked, {"change": "started" if enabled else "stopped", "server": name}, change)
    if enabled:
        running.start(name)
    else:
        running.stop(name)
    return status_of(running, name)


@verb("upstream.restart", person=True)
def restart(asked: Asked, params: Params) -> Facts:
    """{"name"}"""
    name = msgspec.convert(params["name"], str)
    _named(_usable(), name)
    running = _gateway(asked)
    running.reload()
    running.restart(name)
    return status_of(running, name)


@verb("upstream.sign_in", person=True)
def sign_in(asked: Asked, params: Params) -> Facts:
    """{"name"}: begin a sign-in; the answer says where the person has to go."""
    name = msgspec.convert(params["name"], str)
    _named(_usable(), name)
    return _gateway(asked).sign_in(name, asked.actor)


# INVARIANT: no agent learns the address of a sign-in page, which would let it sign in as somebody else.
@verb("upstream.sign_in_state", person=True)
def sign_in_state(asked: Asked, params: Params) -> Facts:
    """{"name"}: how the last attempt does, and whether somebody is signed in."""
    name = msgspec.convert(params["name"], str)
    _looked_at(name)
    return _gateway(asked).sign_in_state(name)


@verb("upstream.sign_out", person=True)
def sign_out(asked: Asked, params: Params) -> Facts:
    """{"name"}: forget what the sign-in left here; the server starts again without it."""
    name = msgspec.convert(params["name"], str)
    _named(_usable(), name)
    found = _gateway(asked).sign_out(name)
    _note(asked, {"change": "signed_out", "server": name})
    return found


def status_of(running: Gateway, name: str) -> Facts:
    return next((each for each in running.servers() if each.get("name") == name), {"name": name})


@verb("upstream.reload", person=True)
def reload(asked: Asked, params: Params) -> Facts:  # noqa: ARG001
    """Read the file again now."""
    _usable()
    return _gateway(asked).reload()


@verb("upstream.logs", person=True)
def logs(asked: Asked, params: Params) -> list[str]:
    """{"name", "count"?}: the last lines a server wrote, with what looks like a secret masked."""
    name = msgspec.convert(params["name"], str)
    count = min(max(1, msgspec.convert(params.get("count", 50), int)), MOST_LINES)
    _looked_at(name)
    redactor = asked.pipeline.policies.of("").redactor
    return [redactor.text(line) for line in _gateway(asked).logs(name, count)]


@verb("upstream.test", person=True)
def test(asked: Asked, params: Params) -> Facts:
    """{"name"}: start it apart from the others, see what it has, and end it."""
    spec = _named(_usable(), msgspec.convert(params["name"], str))
    return _gateway(asked).test(spec)


@verb("upstream.browse", person=False)
def browse(asked: Asked, params: Params) -> list[Facts]:
    """{"name"?, "project"?}: tools of the running servers, each with what policy says about it today."""
    name = msgspec.convert(params.get("name"), str | None)
    project = msgspec.convert(params.get("project", ""), str)
    servers = _looked_at(name)
    found = _gateway(asked).browse(name) if asked.gateway else []
    return [
        each if "verdict" in each else {**each, **_today(asked, each, servers, project)} for each in found
    ]


def _today(asked: Asked, tool: Facts, servers: Mapping[str, ServerSpec], project: str) -> Facts:
    """The verdict a call without arguments would get; it is recorded nowhere."""
    server = str(tool.get("server", ""))
    # INVARIANT: only a person's word makes a server's hints count, never a hint of its own.
    hints = {key: value for key, value in _hints(tool).items() if key != "pinned"}
    if server in servers and servers[server].trusted:
        hints["pinned"] = True
    call = ToolCall(
        tool=str(tool.get("tool", "")), server=server, door="gateway", project=project, annotations=hints
    )
    try:
        verdict = asked.pipeline.judge(call).verdict
    except CheckreinError as error:
        return {"verdict": "deny", "decided_by": "error", "reasons": [str(error)], "risk": "critical"}
    return {
        "verdict": verdict.word,
        "decided_by": f"rule {verdict.rule}" if verdict.rule else verdict.stage,
        "reasons": reason_lines(verdict.reasons),
        "risk": verdict.risk.category.name,
    }


def _hints(tool: Facts) -> Facts:
    """What it says of itself; where it is not offered yet, by the text people are shown."""
    found = tool.get("annotations") or {}
    if not found:
        try:
            found = msgspec.json.decode(str(tool.get("shown", ""))).get("annotations")
        except (msgspec.MsgspecError, AttributeError, UnicodeEncodeError, RecursionError):
            found = {}
    return dict(found) if isinstance(found, dict) else {}


@verb("upstream.review", person=False)
def review(asked: Asked, params: Params) -> list[Facts]:
    """{"name"?}: what servers say about themselves, and what nobody has accepted yet."""
    name = msgspec.convert(params.get("name"), str | None)
    _looked_at(name)
    return _gateway(asked).review(name) if asked.gateway else []


@verb("upstream.accept", person=True)
def accept(asked: Asked, params: Params) -> list[Facts]:
    """{"name", "picks": [{"kind", "name", "hash"}]}: exactly these definitions; the rest of that server."""
    return _settled(asked, params, _gateway(asked).accept)


@verb("upstream.refuse", person=True)
def refuse(asked: Asked, params: Params) -> list[Facts]:
    """{"name", "picks": [{"kind", "name", "hash"}]}"""
    return _settled(asked, params, _gateway(asked).refuse)


def _settled(asked: Asked, params: Params, work: Callable[[str, list[Facts], str], Any]) -> list[Facts]:
    wanted = msgspec.convert(params, _Picks)
    _named(_usable(), wanted.name)
    # INVARIANT: nothing is accepted but what was named by its hash.
    if not wanted.picks or not all(each.hash for each in wanted.picks):
        raise InputError("Say which definitions.", remedy="See `checkrein servers review`.")
    work(wanted.name, [msgspec.structs.asdict(each) for each in wanted.picks], asked.actor)
    return _gateway(asked).review(wanted.name)


@verb("upstream.set_secret", person=True)
def keep_secret(asked: Asked, params: Params) -> Facts:
    """{"name", "value"}: kept for servers' references; servers that use it read it at their next start."""
    try:
        wanted = msgspec.convert(params, _Secret)
    except msgspec.ValidationError:
        raise InputError("A secret is a name and a text.") from None
    place = set_secret(wanted.name, wanted.value)
    # INVARIANT: the record has a secret's name and never its value.
    _note(asked, {"change": "secret_set", "secret": wanted.name, "place": place})
    return {"name": wanted.name, "place": place, "used_by": _users(wanted.name)}


@verb("upstream.secrets", person=False)
def secrets(asked: Asked, params: Params) -> list[Facts]:  # noqa: ARG001
    """Names and places, and which servers refer to them; also names referred to that nobody has set."""
    places = list_secrets()
    wanted = {each for spec in read_servers().servers.values() for each in _references(spec)}
    names = sorted({*places, *wanted})
    return [{"name": each, "place": places.get(each, ""), "used_by": _users(each)} for each in names]


@verb("upstream.remove_secret", person=True)
def forget_secret(asked: Asked, params: Params) -> Facts:
    """{"name"}"""
    name = msgspec.convert(params["name"], str)
    remove_secret(name)
    _note(asked, {"change": "secret_removed", "secret": name})
    return {"name": name, "used_by": _users(name)}


def shown_entry(asked: Asked, spec: ServerSpec) -> Facts:
    """A server's entry fit to be read by anybody: of variables and headers only references, no values."""
    redactor = asked.pipeline.policies.of("").redactor
    found: Facts = redactor.value(entry(spec))
    for key in ("env", "headers"):
        if key in found:
            values: dict[str, str] = getattr(spec, key)
            found[key] = {name: value if _is_reference(value) else "(set)" for name, value in values.items()}
    if secret := spec.client.client_secret:
        found["oauth"]["clientSecret"] = secret if _is_reference(secret) else "(set)"
    if "args" in found:
        # A flag and its value are two words: read together they show what the second is.
        line = redactor.text("\x1f".join(spec.args).replace("\x1f", " "))
        found["args"] = list(found["args"]) if line == " ".join(spec.args) else [line]
    return found


def _is_reference(value: str) -> bool:
    return value.startswith("${") and value.endswith("}") and ":-" not in value and value.count("{") == 1


def _references(spec: ServerSpec) -> list[str]:
    values = (*spec.args, *spec.env.values(), *spec.headers.values())
    client = (spec.client.client_id, spec.client.client_secret, spec.client.scope)
    texts = (spec.command, spec.url, spec.cwd, *values, *client)
    return [name for text in texts for name in references(text)]


def _users(secret: str) -> list[str]:
    found: ServersFile = read_servers()
    return sorted(name for name, spec in found.servers.items() if secret in _references(spec))


def _change(
    asked: Asked,
    data: Facts,
    change: Callable[[dict[str, ServerSpec]], None],
    kept: Mapping[str, str] | None = None,
) -> None:
    """The file as `change` leaves it and its record, both or neither; then the gateway reads it."""
    with _CHANGING:
        servers = _usable()
        change(servers)
        for name, value in (kept or {}).items():
            set_secret(name, value)
        _note(asked, data, lambda: write_servers(servers))
    if asked.gateway is not None:
        asked.gateway().reload()


def _note(asked: Asked, data: Facts, work: Callable[[], None] = lambda: None) -> None:
    asked.pipeline.note("servers_changed", {**data, "actor": asked.actor}, lambda _tx: work())
