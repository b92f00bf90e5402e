"""Servers: what stands behind the gateway, how each is, and what it says about itself, for a yes or a no."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from checkrein.console import choices, shown
from checkrein.console.shown import Block
from checkrein.console.spans import json_spans
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.settings.import_sources import SOURCES

Facts = dict[str, Any]
PENDING = ("new", "changed")
# More than a person reads at once; the rest comes when these are decided.
MOST_SHOWN = 100
MOST_LINES = 1_000
_LONGEST_DESCRIPTION = 2_000
_DONE = {"start": "started", "stop": "stopped", "restart": "restarted"}
_SAID = {"accept": "accepted", "refuse": "refused"}


def show(visit: Visit) -> Response:
    """Every server, and the ways to get more of them."""
    return listed(visit)


def listed(visit: Visit, form: dict[str, str] | None = None, trouble: str = "") -> Response:
    """The page of all servers; with a form that could not be taken, that too."""
    found = _servers(visit)
    return visit.page(
        "servers.html",
        400 if trouble else 200,
        **found,
        form=form or {},
        trouble=trouble,
        sources=SOURCES,
        projects=choices.projects(visit.desk.store),
    )


def rows(visit: Visit) -> Response:
    """The list alone, for a page that is open."""
    return visit.page("_servers.html", **_servers(visit))


def one(visit: Visit) -> Response:
    return _shown(visit)


def state(visit: Visit) -> Response:
    """How one server is, for a page that is open."""
    try:
        server = _server(visit)[0]
    except NotFoundError:
        server = {"name": visit.named["name"], "state": "removed", "word": "removed", "mark": "removed"}
    return visit.page("_server.html", server=server)


def switch(visit: Visit) -> Response:
    """Start, stop or start again."""
    name, what = visit.named["name"], visit.named["what"]
    if what not in _DONE:
        raise NotFoundError("There is no such thing to do.")
    back = "/servers" if visit.form.text("back") == "list" else f"/servers/of/{name}"
    try:
        status = visit.desk.ask(f"upstream.{what}", name=name)
    except CheckreinError as error:
        return visit.back(back, f"{name}: {error}", "bad")
    if what != "stop" and status.get("error"):
        return visit.back(back, f"{name}: {status['error']} {status.get('remedy', '')}", "bad")
    return visit.back(back, f"{name} is {_DONE[what]}.")


def sign_in(visit: Visit) -> Response:
    """Find out where to sign in; the page then has the way there."""
    name = visit.named["name"]
    back = f"/servers/of/{name}"
    try:
        found = visit.desk.ask("upstream.sign_in", name=name)
    except CheckreinError as error:
        return visit.back(back, f"{name}: {error}", "bad")
    if found["state"] == "waiting":
        return visit.back(back)
    return visit.back(back, f"Signed in at {name}." if found["signed_in"] else f"{name} asks for no sign-in.")


def sign_out(visit: Visit) -> Response:
    name = visit.named["name"]
    visit.desk.ask("upstream.sign_out", name=name)
    return visit.back(f"/servers/of/{name}", f"Signed out of {name}.")


def remove(visit: Visit) -> Response:
    """Out of the file, with its sign-in and the secrets that were kept for it alone."""
    name = visit.named["name"]
    if visit.form.text("sure") != "yes":
        return visit.back(f"/servers/of/{name}", "Tick the box to say that you mean it.", "bad")
    gone = visit.desk.ask("upstream.remove", name=name)
    forgot = f" Forgot: {', '.join(gone['secrets'])}." if gone["secrets"] else ""
    return visit.back("/servers", f"Removed {name}.{forgot}")


def test(visit: Visit) -> Response:
    """Start it once apart from the others, and say what came of it."""
    try:
        found = visit.desk.ask("upstream.test", name=visit.named["name"])
    except CheckreinError as error:
        return _shown(visit, trouble=str(error), status=400)
    return _shown(visit, tested=_tested(found))


def logs(visit: Visit) -> Response:
    """What it last wrote to its standard error."""
    name, count = visit.named["name"], visit.query.number("lines") or 200
    server, _ = _server(visit)
    lines = visit.desk.ask("upstream.logs", name=name, count=min(max(1, count), MOST_LINES))
    return visit.page("server_logs.html", server=server, lines=lines, count=count)


def decide(visit: Visit) -> Response:
    """Accept or refuse exactly the definitions that were shown."""
    name, form = visit.named["name"], visit.form
    word, _, single = form.text("only").partition(":")
    wanted = [single] if single else form.all("pick")
    answer = word or form.text("answer")
    if answer not in _SAID:
        raise InputError("Say whether to accept or to refuse.")
    # INVARIANT: what is accepted is what the person saw, by its hash, and never what came in its place.
    picks = [_pick(each) for each in wanted]
    back = f"/servers/of/{name}"
    if not picks:
        return visit.back(back, "Choose some definitions first.", "bad")
    try:
        after = visit.desk.ask(f"upstream.{answer}", name=name, picks=picks)
    except CheckreinError as error:
        return visit.back(back, f"Nothing was {_SAID[answer]}: {error}", "bad")
    _tell(visit, answer, picks, after)
    return visit.back(back)


def _pick(text: str) -> dict[str, str]:
    kind, _, rest = text.partition(":")
    hash_, _, name = rest.partition(":")
    return {"kind": kind, "hash": hash_, "name": name}


def _tell(visit: Visit, answer: str, picks: Sequence[Facts], after: Sequence[Facts]) -> None:
    hashes = {each["hash"] for each in picks}
    done = [each for each in after if each["hash"] in hashes and each["state"] == _SAID[answer]]
    visit.session.tell("good", f"{_SAID[answer].capitalize()} {len(done)} of {len(picks)} definition(s).")
    if len(done) < len(picks):
        visit.session.tell("bad", "The rest changed meanwhile, or is not offered any more. Look again.")
    for each in done if answer == "accept" else ():
        if each.get("hidden"):
            visit.session.tell("bad", f"{each['name']} stays hidden: {each['hidden']}")


def _servers(visit: Visit) -> Facts:
    found = visit.desk.ask("upstream.list")
    return {**found, "servers": [_row(each) for each in found["servers"]]}


def _server(visit: Visit) -> tuple[Facts, Facts]:
    """The server this page is about, and the file it stands in."""
    found, name = _servers(visit), visit.named["name"]
    for each in found["servers"]:
        if each["name"] == name:
            return _with_sign_in(visit, each), found
    raise NotFoundError(f"There is no server {name[:40]!r}.")


def _with_sign_in(visit: Visit, server: Facts) -> Facts:
    """With how its sign-in does, and the host a person is led to, where it has one."""
    if not server["entry"].get("oauth"):
        return {**server, "sign_in": None}
    found = visit.desk.ask("upstream.sign_in_state", name=server["name"])
    host = urlsplit(found["url"]).netloc
    mark = f"{server['mark']} {found['state']} {found['signed_in']}"
    return {**server, "sign_in": {**found, "host": host}, "mark": mark}


def _row(status: Facts) -> Facts:
    """A server's state with what a page says besides."""
    entry = status.get("entry") or {}
    words = [entry.get("command", ""), *entry.get("args", ())]
    by_person = entry.get("enabled") is False or status.get("enabled") is False
    return {
        **status,
        "entry": entry,
        "target": entry.get("url") or (shlex.join(words) if entry else ""),
        "calls_itself": _own_name(status),
        "off": by_person,
        "word": "stopped by you" if by_person else status.get("state", "stopped"),
        "trusted": bool(entry.get("trusted") or status.get("trusted")),
        "mark": f"{status.get('state')} {status.get('offered')} {status.get('hidden')}",
    }


def _own_name(told: Facts) -> str:
    """What a server calls itself, which may be anything."""
    info = told.get("info")
    names = [info.get("name"), info.get("version")] if isinstance(info, dict) else []
    return shown.one_line(" ".join(each for each in names if isinstance(each, str)), longest=80)


def _shown(visit: Visit, *, trouble: str = "", tested: Facts | None = None, status: int = 200) -> Response:
    (server, found), name = _server(visit), visit.named["name"]
    project = visit.query.text("project")
    reviewed: list[Facts] = []
    today: dict[str, Facts] = {}
    # What a server says is asked of one that runs; this page does not wait for one that only starts.
    if server.get("state") != "starting":
        reviewed = visit.desk.ask("upstream.review", name=name)
        tools = visit.desk.ask("upstream.browse", name=name, project=project)
        today = {str(each.get("tool")): each for each in tools}
    definitions = [_definition(each, today) for each in reviewed]
    pending = [each for each in definitions if each["state"] in PENDING]
    return visit.page(
        "server.html",
        status,
        server=server,
        fault=found["fault"],
        pending=pending[:MOST_SHOWN],
        pending_count=len(pending),
        tools=[each for each in definitions if each["kind"] == "tool"][:MOST_SHOWN],
        tool_count=sum(each["kind"] == "tool" for each in definitions),
        others=[each for each in definitions if each["kind"] != "tool"][:MOST_SHOWN],
        project=project,
        projects=choices.projects(visit.desk.store),
        trouble=trouble,
        tested=tested,
    )


def _definition(each: Facts, today: dict[str, Facts]) -> Facts:
    """What a server says of itself, with what policy says of that, ready to be read."""
    title = each["name"] or each["kind"]
    policy = today.get(each["name"], {}) if each["kind"] == "tool" else {}
    definition = policy.get("definition")
    definition = definition if isinstance(definition, dict) else {}
    description = definition.get("description")
    schemas = [(key, definition[key]) for key in ("inputSchema", "outputSchema") if key in definition]
    return {
        **each,
        "title": title,
        "pick": f"{each['kind']}:{each['hash']}:{each['name']}",
        "changes": [Block(kind="diff", title=f"{title}: what changed", lines=_lines(each["diff"]))],
        "whole": [
            Block(kind="json", title=f"{title}: the whole definition", spans=json_spans(each["shown"]))
        ],
        "description": description[:_LONGEST_DESCRIPTION] if isinstance(description, str) else "",
        "schemas": [
            Block(kind="json", title=f"{title}: {key}", spans=json_spans(shown.pretty(value)))
            for key, value in schemas
        ],
        "risk": policy.get("risk", ""),
        "verdict": policy.get("verdict", ""),
        "reasons": policy.get("reasons", ()),
        "decided_by": policy.get("decided_by", ""),
    }


def _lines(diff: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """By the first character alone: no text of a server's passes for a line between others."""
    kinds = {"+": "in", "-": "out", "@": "place", "…": "place"}
    return tuple((kinds.get(line[:1], ""), line) for line in diff)


def _tested(found: Facts) -> Facts:
    tools = found.get("tools") or []
    return {
        **found,
        "calls_itself": _own_name(found) or "no name",
        "tools": [
            {"name": shown.one_line(str(each.get("name")), longest=96), "flags": each.get("flags") or ()}
            for each in tools[:MOST_SHOWN]
        ],
        "count": len(tools),
    }
