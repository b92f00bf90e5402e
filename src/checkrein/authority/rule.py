"""Stored rules: a person adds, changes, orders and removes them."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError
from checkrein.ledger.record import new_id
from checkrein.policies import as_rule
from checkrein.policy.rules import rule
from checkrein.store import Transaction
from checkrein.store import rules as stored

CLEARABLE = ("server", "when", "expires_at", "uses", "reason")


class _Edit(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    changes: dict[str, Any] = {}
    clear: tuple[str, ...] = ()


class _Move(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    before: str | None = None
    after: str | None = None
    priority: int | None = None


@verb("rule.add", person=True)
def add(asked: Asked, params: Params) -> dict[str, Any]:
    """{"rule"}: keys as in a settings file; the rule with its new id."""
    body = msgspec.convert(params["rule"], dict[str, Any])
    now = asked.pipeline.clock()
    # The end of an id differs also between rules of one moment.
    rule_id = f"r-{new_id(now)[-6:]}"
    # INVARIANT: a rule that cannot mean anything is refused when it is written.
    rule(body, id=rule_id)
    data = {"change": "added", "id": rule_id, "rule": body, "actor": asked.actor}
    asked.pipeline.note("rule_changed", data, lambda tx: stored.add_rule(tx, rule_id, body, now))
    return {"id": rule_id, **body}


@verb("rule.edit", person=True)
def edit(asked: Asked, params: Params) -> None:
    """{"id", "changes", "clear"?}: what is not named stays."""
    wanted = msgspec.convert(params, _Edit)
    if unknown := set(wanted.clear) - set(CLEARABLE):
        raise InputError(f"{sorted(unknown)} cannot be cleared.", remedy=f"Use {', '.join(CLEARABLE)}.")
    now = asked.pipeline.clock()

    def change(tx: Transaction) -> None:
        body = _edited(stored.get_rule(tx, wanted.id), wanted)
        rule(body, id=wanted.id)
        stored.update_rule(tx, wanted.id, body, now)

    data = {"change": "edited", "id": wanted.id, "rule": wanted.changes, "cleared": list(wanted.clear)}
    asked.pipeline.note("rule_changed", {**data, "actor": asked.actor}, change)


@verb("rule.remove", person=True)
def remove(asked: Asked, params: Params) -> None:
    """{"id"}"""
    rule_id = msgspec.convert(params["id"], str)
    data = {"change": "removed", "id": rule_id, "actor": asked.actor}
    asked.pipeline.note("rule_changed", data, lambda tx: stored.delete_rule(tx, rule_id))


@verb("rule.move", person=True)
def move(asked: Asked, params: Params) -> None:
    """{"id", one of "before", "after" (a stored rule) and "priority"}"""
    wanted = msgspec.convert(params, _Move)
    where = {"before": wanted.before, "after": wanted.after, "priority": wanted.priority}
    if sum(each is not None for each in where.values()) != 1:
        raise InputError("Say where to.", remedy="Give one of --before, --after and --priority.")
    now = asked.pipeline.clock()
    data = {"change": "moved", "id": wanted.id, **where, "actor": asked.actor}
    asked.pipeline.note("rule_changed", data, lambda tx: _moved(tx, wanted, now))


def _edited(old: stored.StoredRule, wanted: _Edit) -> dict[str, Any]:
    """The rule as it will be; naming a tool takes the place of a pattern, and the other way round."""
    kept = {**old.body, "uses": old.uses}
    if wanted.changes.keys() & {"tool", "pattern"}:
        kept = {key: value for key, value in kept.items() if key not in ("tool", "pattern")}
    body = kept | wanted.changes
    return {key: value for key, value in body.items() if key not in wanted.clear and value is not None}


def _moved(tx: Transaction, wanted: _Move, now: float) -> None:
    moved = stored.get_rule(tx, wanted.id)
    target = stored.get_rule(tx, wanted.before or wanted.after or wanted.id)
    place = wanted.priority if wanted.priority is not None else as_rule(target).priority
    body = {**moved.body, "uses": moved.uses, "priority": place}
    stored.update_rule(tx, wanted.id, body, now)
    if wanted.priority is None and target.id != wanted.id:
        order = [each.id for each in stored.all_rules(tx) if each.id != wanted.id]
        order.insert(order.index(target.id) + (1 if wanted.after else 0), wanted.id)
        stored.reorder_rules(tx, order)
