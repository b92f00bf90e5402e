"""Flows: single effects that are bearable alone and not together, within a call and across a session.

Called last, with everything a call does and what the session did before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from checkrein.call import Category, Effect
from checkrein.classify.findings import Finding

_REMOVES = re.compile(r"\b(?:uninstall|remove|rm|purge|erase|autoremove)\b")


def _is_secret(effect: Effect) -> bool:
    return effect.kind == "secret" or (effect.kind == "read" and effect.scope == "secret")


def _leaves(effect: Effect) -> bool:
    """Whether data can leave through this effect."""
    if effect.kind in ("network", "message"):
        return effect.scope not in ("loopback", "service", "listen", "option")
    return effect.kind == "git-remote" and effect.scope != "read"


def _arrives(effect: Effect) -> bool:
    return effect.kind in ("network", "download") and effect.scope not in ("service", "option")


def flows(effects: Iterable[Effect], history: tuple[Effect, ...]) -> tuple[Finding, ...]:
    """What the effects of this call mean together, and after what the session did before."""
    now = list(effects)
    found = []
    # INVARIANT: a secret that was read and data that leaves are critical together
    secret = next((e for e in (*now, *history) if _is_secret(e)), None)
    out = next((e for e in now if _leaves(e)), None)
    if secret is not None and out is not None:
        when = "reads" if secret in now else "read earlier"
        where, what = out.target or "elsewhere", secret.target or "a secret"
        why = f"it sends data to {where} and the session {when} {what}"
        found.append(Finding(Effect("network", "flow", out.target), Category.critical, why))
    # INVARIANT: stopping or removing Checkrein is critical
    for effect in now:
        ends = effect.kind in ("process", "config") or (
            effect.kind == "package" and _REMOVES.search(effect.target)
        )
        if ends and "checkrein" in effect.target:
            why = f"`{effect.target}` would stop or remove the gate itself"
            found.append(Finding(Effect("self", "process", effect.target), Category.critical, why))
    # INVARIANT: what was downloaded and is then executed is critical
    downloaded = {e.target for e in (*history, *now) if e.kind == "download"}
    written = {e.target for e in history if e.kind == "write" and e.target}
    for effect in now:
        if effect.kind != "exec" or not effect.target:
            continue
        if effect.target in downloaded:
            why = f"it runs {effect.target}, which was downloaded"
            found.append(Finding(Effect("exec", "flow", effect.target), Category.critical, why))
        elif effect.target in written:
            why = f"it runs {effect.target}, which this session wrote"
            found.append(Finding(Effect("exec", "written", effect.target), Category.medium, why))
    if any(e.kind == "exec" and e.scope == "shell" for e in now) and any(_arrives(e) for e in now):
        why = "it downloads and it runs text nobody has seen"
        found.append(Finding(Effect("exec", "flow", ""), Category.critical, why))
    return tuple(found)
