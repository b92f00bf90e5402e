"""Policy: rules in order, tried before they count; phases, profiles, grants, and files that await a yes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import Response

from checkrein.authority.rule import CLEARABLE
from checkrein.console import choices, shown
from checkrein.console.forms import Fields
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError
from checkrein.policies import InForce
from checkrein.policy.lint import lint
from checkrein.policy.rules import ACTIONS, Rule, rule
from checkrein.settings.reading import read
from checkrein.settings.sources import PROJECT_FILE, content_hash
from checkrein.store import rules as stored
from checkrein.store.phases import all_phases
from checkrein.store.policies import is_accepted

_TRIED = 500
_FILES = 60
_FIELDS = ("action", "tool", "pattern", "server", "when", "priority", "expires_at", "uses", "reason")


def show(visit: Visit) -> Response:
    """Everything people wrote that decides about calls."""
    return _shown(visit, visit.query.text("project"), _prefilled(visit.query))


def rule_form(visit: Visit) -> Response:
    """The same page, with one rule in the form."""
    found = stored.get_rule(visit.desk.store, visit.named["id"])
    return _shown(visit, "", _as_form({**found.body, "uses": found.uses}), editing=found.id)


def add(visit: Visit) -> Response:
    """A new rule; one that cannot be right comes back with what is wrong with it."""
    return _saved(visit, "")


def edit(visit: Visit) -> Response:
    return _saved(visit, visit.named["id"])


def _saved(visit: Visit, editing: str) -> Response:
    given = {name: visit.form.text(name) for name in _FIELDS}
    try:
        body = _body(visit.form, visit.desk.now())
        if not editing:
            made = visit.desk.ask("rule.add", rule=body)
            return visit.back("/policy", f"Added {made['id']}.{_remarks(visit, made['id'])}")
        gone = [name for name in CLEARABLE if name not in body]
        visit.desk.ask("rule.edit", id=editing, changes=body, clear=gone)
        return visit.back("/policy", f"Changed {editing}.{_remarks(visit, editing)}")
    except CheckreinError as error:
        return _shown(visit, "", given, editing=editing, trouble=str(error), status=400)


def try_(visit: Visit) -> Response:
    """What the rule would have changed about the calls of late, before it counts."""
    given = {name: visit.form.text(name) for name in _FIELDS}
    editing, project = visit.form.text("editing"), visit.form.text("project")
    try:
        body = _body(visit.form, visit.desk.now())
        rule(body, id="tried")
        others = [
            {**each.body, "uses": each.uses, "id": each.id}
            for each in stored.all_rules(visit.desk.store)
            if each.id != editing
        ]
        wanted = [*others, {**body, "id": editing or "this rule"}]
        known = [{key: value for key, value in each.items() if value is not None} for each in wanted]
        asked = {"rules": known, "last": _TRIED, "project": project, "replacing": "stored"}
        found = visit.desk.offered("shadow.try", **asked)
        trouble = "" if found is not None else "This server cannot try rules yet."
    except CheckreinError as error:
        found, trouble = None, str(error)
    return _shown(
        visit, project, given, editing=editing, trouble=trouble, tried=found, status=400 if trouble else 200
    )


def remove(visit: Visit) -> Response:
    visit.desk.ask("rule.remove", id=visit.named["id"])
    return visit.back("/policy", f"Removed {visit.named['id']}.")


def move(visit: Visit) -> Response:
    """Before or after another stored rule."""
    where = {name: visit.form.text(name) for name in ("before", "after") if visit.form.text(name)}
    visit.desk.ask("rule.move", id=visit.named["id"], **where)
    return visit.back("/policy", f"Moved {visit.named['id']}.")


def set_phase(visit: Visit) -> Response:
    """For a session, a project or everything; without a name what is set there is forgotten."""
    place = {name: visit.form.text(name) for name in ("project", "session") if visit.form.text(name)}
    name, back = visit.form.text("name"), visit.form.text("back")
    if name:
        visit.desk.ask("phase.set", name=name, **place)
    else:
        visit.desk.ask("phase.clear", **place)
    told = f"The phase is now {name}." if name else "The phase set there is forgotten."
    return visit.back("/sessions" if back == "sessions" else "/policy", told)


def accept(visit: Visit) -> Response:
    project = visit.form.text("project")
    visit.desk.ask("policy.accept", project=project, sha256=visit.form.text("sha256"))
    return visit.back("/policy", f"Accepted {PROJECT_FILE} of {shown.folder_name(project)} as it is now.")


def withdraw(visit: Visit) -> Response:
    project = visit.form.text("project")
    visit.desk.ask("policy.revoke", project=project)
    return visit.back("/policy", f"{PROJECT_FILE} of {shown.folder_name(project)} may only tighten now.")


def revoke_grant(visit: Visit) -> Response:
    visit.desk.ask("grant.revoke", id=visit.named["id"])
    return visit.back("/policy", "Revoked. The next such call asks again.")


def _shown(
    visit: Visit,
    project: str,
    form: dict[str, str],
    *,
    editing: str = "",
    trouble: str = "",
    tried: Any = None,
    status: int = 200,
) -> Response:
    desk = visit.desk
    force = desk.pipeline.policies.of(project)
    projects = choices.projects(desk.store)
    return visit.page(
        "policy.html",
        status,
        project=project,
        projects=projects,
        fault=force.policy.fault,
        rules=_listed(visit, force),
        form=form,
        editing=editing,
        trouble=trouble,
        tried=tried,
        actions=ACTIONS,
        settings=force.settings,
        phases=[
            {"project": place, "session": session, "name": name, "at": at}
            for place, session, name, at in all_phases(desk.store)
        ],
        grants=desk.offered("grant.list"),
        files=_files(visit, projects),
    )


def _listed(visit: Visit, force: InForce) -> list[dict[str, Any]]:
    """Rules in the order they are tried, each with its neighbours and what lint says of it."""
    ordered = [*force.policy.rules.rules, *force.policy.project_rules.rules]
    own = {each.id for each in stored.all_rules(visit.desk.store)}
    movable = [each.id for each in ordered if each.id in own]
    remarks: dict[str, list[str]] = {}
    for finding in lint(ordered, visit.desk.now()):
        remarks.setdefault(finding.rule, []).append(finding.message)
    listed = []
    for each in ordered:
        at = movable.index(each.id) if each.id in own else -1
        listed.append(
            {
                "rule": each,
                "stored": each.id in own,
                "target": each.tool if each.tool is not None else each.pattern,
                "when": [condition.label for condition in each.when],
                "remarks": remarks.get(each.id, []),
                "up": movable[at - 1] if at > 0 else "",
                "down": movable[at + 1] if 0 <= at < len(movable) - 1 else "",
            }
        )
    return listed


def _remarks(visit: Visit, rule_id: str) -> str:
    policy = visit.desk.pipeline.policies.of("").policy
    found = [
        each.message for each in lint(list(policy.rules.rules), visit.desk.now()) if each.rule == rule_id
    ]
    return f" Note: it {'; it '.join(found)}." if found else ""


def _files(visit: Visit, projects: list[str]) -> list[dict[str, Any]]:
    """Projects' own files: what they say, and whether a person said yes to exactly that."""
    found: list[dict[str, Any]] = []
    for project in projects[:_FILES]:
        path = Path(project) / PROJECT_FILE
        try:
            content = read(path)
        except CheckreinError as error:
            found.append({"project": project, "trouble": str(error)})
            continue
        if content is None:
            continue
        loaded = visit.desk.pipeline.policies.loaded(project)
        found.append(
            {
                "project": project,
                "path": str(path),
                "sha256": content_hash(content),
                "text": content.decode("utf-8", "replace"),
                "accepted": is_accepted(visit.desk.store, str(path), content_hash(content)),
                "notices": loaded.notices,
                "trouble": loaded.fault,
            }
        )
    return sorted(found, key=lambda each: bool(each.get("accepted")))


def _prefilled(query: Fields) -> dict[str, str]:
    return {name: query.text(name) for name in _FIELDS}


def _as_form(body: dict[str, Any]) -> dict[str, str]:
    """A stored rule as its form shows it."""
    made: Rule = rule(body, id="shown")
    when = body.get("when")
    return {
        "action": made.action,
        "tool": made.tool or "",
        "pattern": made.pattern or "",
        "server": made.server or "",
        "when": shown.pretty(when) if when else "",
        "priority": str(made.priority),
        "expires_at": "" if made.expires_at is None else f"{shown.clock(made.expires_at)}+00:00",
        "uses": "" if made.uses is None else str(made.uses),
        "reason": made.reason,
    }


def _body(form: Fields, now: float) -> dict[str, Any]:
    """The rule a form describes; what is empty is left out."""
    body: dict[str, Any] = {
        name: form.text(name) for name in ("action", "tool", "pattern", "server", "reason") if form.text(name)
    }
    when = form.json("when")
    if when is not None:
        if not isinstance(when, list | dict):
            raise InputError("`when` must be a list of conditions.")
        body["when"] = when if isinstance(when, list) else [when]
    for name in ("priority", "uses"):
        if form.number(name) is not None:
            body[name] = form.number(name)
    ends = shown.moment(form.text("expires_at"), now, ahead=True)
    return body if ends is None else {**body, "expires_at": ends}
