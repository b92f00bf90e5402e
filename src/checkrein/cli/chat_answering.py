"""A call that waits for a person, in the flow of a conversation: yes, no and why, other arguments, always."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click
import msgspec

from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.terminal import plain
from checkrein.errors import CheckreinError, InputError

Facts = dict[str, Any]
Say = Callable[[str], None]
Read = Callable[[str], str]


def described(call: Facts) -> list[str]:
    """Everything a person needs to decide."""
    question = call.get("question") or {}
    arguments = msgspec.json.format(msgspec.json.encode(call["arguments"]), indent=2).decode()
    risk = click.style(f"{question.get('risk') or 'unknown'} risk", bold=True)
    return [
        f"{risk}  {plain(call['name'])}",
        *(f"  {plain(line)}" for line in arguments.splitlines()),
        *(f"  - {plain(reason)}" for reason in question.get("reasons", ()) if reason),
    ]


def answer(call: Facts, say: Say, read: Read) -> None:
    """Ask until there is an answer. EOFError leaves the question as it is."""
    for line in described(call):
        say(line)
    offer = _widest((call.get("question") or {}).get("offers", ()))
    say("y yes, n no, e edit" + (f", a yes for this session: {plain(offer['label'])}" if offer else ""))
    while True:
        key, _, rest = read("Run it? > ").strip().partition(" ")
        try:
            if _obeyed(key.lower(), rest.strip(), call, offer, say, read):
                return
        except CheckreinError as error:
            say(f"checkrein: {plain(str(error))}")
            if _is_over(call):
                return


def _obeyed(key: str, rest: str, call: Facts, offer: Facts | None, say: Say, read: Read) -> bool:
    named = {"run": call["run"], "call": call["call_id"]}
    if key in ("y", "yes"):
        told = ask_chat("approve", **named, reason=rest)
    elif key in ("n", "no"):
        told = ask_chat("decline", **named, reason=rest or read("Why (Enter for no reason) > ").strip())
    elif key in ("e", "edit"):
        told = ask_chat("approve", **named, edited=_edited(call["arguments"], read))
    elif key in ("a", "always") and offer:
        told = ask_chat("approve", **named, remember={"what": offer["what"], "for": "session"})
    else:
        return False
    if told["answer"] not in ("approved", "denied"):
        say(f"Your answer does not count: {plain(told['answer'])}.")
    return True


def _is_over(call: Facts) -> bool:
    """Whether somebody else answered, or nobody did in time."""
    try:
        known = ask_chat("session", id=call["session"], limit=1)
    except CheckreinError:
        return True
    now = known["calls"].get(f"{call['run']}/{call['call_id']}", {})
    return known["run"] is None or (bool(now) and not now.get("question"))


def _widest(offers: Any) -> Facts | None:
    """What a yes for the session covers: the family where there is one."""
    by_what = {each["what"]: each for each in offers}
    return by_what.get("family") or by_what.get("exact") or next(iter(by_what.values()), None)


def _edited(arguments: Facts, read: Read) -> Facts:
    """In the person's editor where they have one, else on a line."""
    text = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        try:
            changed = click.edit(text, extension=".json")
        except click.ClickException as error:
            raise InputError(error.message) from None
        if changed is None:
            raise InputError("Nothing was changed; the call still waits.")
    else:
        changed = read("Arguments as JSON > ")
    try:
        return msgspec.json.decode(changed, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"This is no JSON object: {error}.", remedy="The call still waits.") from None
