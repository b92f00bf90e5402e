"""Phases: what planning, building and auditing are for. A phase nobody can name is auditing."""

from __future__ import annotations

from collections.abc import Mapping

from checkrein.settings import PARENT_DOMAIN, Phase

STRICTEST = "auditing"
_DECIDED_BY_TRUST = ("building",)


def phase_named(name: object, phases: Mapping[str, Phase]) -> str:
    """The phase in force: unset, unreadable and unknown names are the strictest one."""
    return name if isinstance(name, str) and name in phases else STRICTEST


def blocked(name: str, phase: Phase, domains: tuple[str, ...]) -> str:
    """Why the phase blocks these domains, or nothing."""
    for domain in domains:
        if _listed(domain, phase.denied):
            return f"`{domain}` is denied in the {name} phase"
    if name in _DECIDED_BY_TRUST:
        return ""
    for domain in domains:
        if not _listed(domain, phase.allowed) and not _listed(domain, phase.trust_gated):
            return f"`{domain}` is not part of the {name} phase"
    return ""


def gated(phase: Phase, domains: tuple[str, ...]) -> tuple[str, ...]:
    """The domains that ask until their trust is above the gate."""
    return tuple(domain for domain in domains if _listed(domain, phase.trust_gated))


def _listed(domain: str, names: tuple[str, ...]) -> bool:
    return domain in names or PARENT_DOMAIN.get(domain) in names
