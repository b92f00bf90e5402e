"""Servers that are to come: written into a form, or brought along from other programs; and their secrets."""

from __future__ import annotations

import shlex
from typing import Any

from starlette.responses import Response

from checkrein.console import choices
from checkrein.console.forms import Fields
from checkrein.console.views import servers
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError
from checkrein.newcomers import candidates, entry_of, mark, pairs_of, sign_in_of, words_of
from checkrein.settings.import_sources import SOURCES
from checkrein.settings.server_imports import Item
from checkrein.settings.servers import read_servers

Facts = dict[str, Any]
# INVARIANT: variables, headers and a client's secret never come back in a page, also not in the form again.
_GIVEN_BACK = "name line url cwd inherit share timeout description oauth trusted".split()
_GIVEN_BACK += "oauth_client_id oauth_scope oauth_redirect_uri".split()
_WORDS = {
    "new": "can be imported",
    "same": "there already",
    "ours": "is Checkrein itself",
    "clash": "its name is taken",
    "broken": "cannot be used",
}


def add(visit: Visit) -> Response:
    """A new server; one that cannot be right comes back with why. Then it is started."""
    name = visit.form.text("name")
    try:
        entry, secrets = entry_of(name, _raw(visit.form))
        entry["enabled"] = visit.form.text("answer") != "write"
        visit.desk.ask("upstream.add", name=name, entry=entry, secrets=secrets)
    except CheckreinError as error:
        again = {key: visit.form.text(key) for key in _GIVEN_BACK}
        hint = " Write the variables, headers and secrets again." if _has_values(visit.form) else ""
        return servers.listed(visit, again, f"{error}{hint}")
    visit.session.tell("good", f"Added {name}.{_kept(secrets)}")
    if not entry["enabled"]:
        return visit.back(f"/servers/of/{name}")
    return _started(visit, name)


def _started(visit: Visit, name: str) -> Response:
    try:
        visit.desk.ask("upstream.start", name=name)
    except CheckreinError as error:
        return visit.back(f"/servers/of/{name}", f"It could not be started: {error}", "bad")
    return visit.back(f"/servers/of/{name}")


def _raw(form: Fields) -> Facts:
    """The form as an entry of a file."""
    words, url = words_of(form.text("line")), form.text("url")
    if bool(words) == bool(url):
        raise InputError("Give a command or an address, and not both.")
    raw: Facts = {key: form.text(key) for key in ("cwd", "description") if form.text(key)}
    raw |= {"url": url} if url else {"command": words[0], "args": words[1:]}
    raw["env"] = pairs_of(form.text("env"), "=", "variables")
    raw["headers"] = pairs_of(form.text("headers"), ":", "headers")
    raw["inherit"] = form.text("inherit").replace(",", " ").split()
    raw["share"] = form.text("share") or "auto"
    if form.number("timeout") is not None:
        raw["timeout"] = form.number("timeout")
    raw |= {"oauth": found} if (found := _sign_in(form)) else {}
    raw |= {"trusted": True} if form.text("trusted") == "yes" else {}
    return raw


def _sign_in(form: Fields) -> bool | dict[str, str]:
    return sign_in_of(
        client_id=form.text("oauth_client_id"),
        client_secret=form.text("oauth_client_secret"),
        scope=form.text("oauth_scope"),
        redirect_uri=form.text("oauth_redirect_uri"),
        wanted=form.text("oauth") == "yes",
    )


def _has_values(form: Fields) -> bool:
    return any(form.text(key) for key in ("env", "headers", "oauth_client_secret"))


def _kept(secrets: dict[str, str]) -> str:
    return f" Kept as secrets: {', '.join(sorted(secrets))}." if secrets else ""


def import_form(visit: Visit) -> Response:
    """What a program has: the commands whole, and of secrets the names."""
    source, project = visit.query.text("source"), visit.query.text("project")
    trouble = ""
    files: tuple[str, ...] = ()
    items: list[Facts] = []
    if source:
        try:
            found = candidates(source, project, _existing())
            files, items = found.files, [_item(each) for each in found.items]
        except CheckreinError as error:
            trouble = str(error)
    return visit.page(
        "server_import.html",
        400 if trouble else 200,
        source=source,
        sources=SOURCES,
        project=project,
        projects=choices.projects(visit.desk.store),
        files=files,
        items=items,
        trouble=trouble,
    )


def import_(visit: Visit) -> Response:
    """Those that were chosen, if they are still what was shown."""
    source, project = visit.form.text("source"), visit.form.text("project")
    chosen = set(visit.form.all("pick"))
    back = {"source": source, "project": project}
    found = candidates(source, project, _existing())
    # INVARIANT: a file that became another one since it was shown brings nothing in.
    wanted = [each for each in found.items if each.state == "new" and mark(each) in chosen]
    if not chosen or len(wanted) < len(chosen):
        told = "Choose some first." if not chosen else "The file changed since it was shown. Look again."
        return visit.back("/servers/import", told, "bad", **back)
    entries = [{"name": each.name, "entry": each.entry, "secrets": each.secrets} for each in wanted]
    visit.desk.ask("upstream.import", servers=entries, source=source)
    secrets = {name: "" for each in wanted for name in each.secrets}
    needs = [name for each in wanted for name in each.needs]
    visit.session.tell("good", f"Imported {', '.join(each.name for each in wanted)}.{_kept(secrets)}")
    if needs:
        visit.session.tell("bad", f"These have no value yet: {', '.join(needs)}.")
        return visit.back("/servers/secrets")
    return visit.back("/servers")


def _existing() -> Any:
    found = read_servers()
    if found.fault:
        raise InputError(found.fault)
    return found.servers


def _item(item: Item) -> Facts:
    entry = item.entry
    return {
        **item.shown(),
        "mark": mark(item),
        "word": _WORDS[item.state],
        "target": entry.get("url") or shlex.join([entry.get("command", ""), *entry.get("args", ())]),
    }


def secrets(visit: Visit) -> Response:
    """Names of kept values, and which servers refer to them. Values are never shown."""
    return visit.page("server_secrets.html", secrets=visit.desk.ask("upstream.secrets"))


def keep_secret(visit: Visit) -> Response:
    name = visit.form.text("name")
    made = visit.desk.ask("upstream.set_secret", name=name, value=visit.form.text("value"))
    place = "your key store" if made["place"] == "keyring" else "a file only you can read"
    used = f" From their next start it is used by: {', '.join(made['used_by'])}." if made["used_by"] else ""
    return visit.back("/servers/secrets", f"Kept {name} in {place}.{used}")


def forget_secret(visit: Visit) -> Response:
    name = visit.form.text("name")
    if visit.form.text("sure") != "yes":
        return visit.back("/servers/secrets", "Tick the box to say that you mean it.", "bad")
    visit.desk.ask("upstream.remove_secret", name=name)
    return visit.back("/servers/secrets", f"Forgot {name}.")
