"""Which model answers a message: the one a person picked, or where routing is on, the persona's for the task.

A persona that failed hands over to the next; above the last one stands the user.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkrein.policy.router import PERSONAS, Persona, escalate
from checkrein.policy.tasks import LONGEST, route_text
from checkrein.settings import Chat, Model


class Choice(msgspec.Struct, frozen=True):
    """A model by its reference (empty: the usual one), the persona it stands for, and why."""

    ref: str
    persona: str = ""
    reason: str = ""


def choose(text: str, picked: str, chat: Chat, settings: Model) -> Choice:
    """INVARIANT: the model a person picked is the model that answers."""
    if picked or chat.routing != "on":
        return Choice(picked or chat.model)
    routed = route_text(text[:LONGEST], None, settings)
    return Choice(_ref(routed.persona, chat), routed.persona.name, routed.reason)


def hand_up(persona: str, chat: Chat) -> Choice | Literal["user"]:
    """Who takes over from a persona that could not do it: the next one with another model, else the user."""
    before = _ref(_named(persona), chat)
    found = escalate(persona)
    while not isinstance(found, str):
        ref = _ref(found, chat)
        if ref != before:
            return Choice(ref, found.name, f"handed up from {persona}")
        found = escalate(found.name)
    return "user"


def _ref(persona: Persona, chat: Chat) -> str:
    found: str = getattr(chat, persona.name)
    return found or chat.model


def _named(name: str) -> Persona:
    return next(each for each in PERSONAS if each.name == name)
