"""Our answers in the agent's own words: what the hook prints, says on stderr and exits with.

The words are in the agent's table; here they are only filled in. Nothing here decides.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.doors.hooks.dialects import AGENTS, GUESTS, HEEDED, Answer, Meaning, Saying, dialect
from checkrein.doors.hooks.events import Event
from checkrein.errors import InputError

LONGEST_TEXT = 10_000
_KNOWN = (*AGENTS, *GUESTS)
# Understood by every client we know, in words of none.
_REFUSAL = Answer(stderr="$reason", exit=2)


class Reply(msgspec.Struct, frozen=True):
    """What the hook process prints and how it exits."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0


def allow(
    event: Event,
    *,
    persons: bool = False,
    reason: str = "",
    updated: dict[str, Any] | None = None,
    context: str = "",
) -> Reply:
    """Let the call run, with `updated` as its whole input if given.

    `persons`: the allow is a person's own word. Where an allow would overrule the agent's own checks and is
    not, or where nobody knows what it does, the agent hears nothing and goes on by its own checks.
    """
    saying: Saying = "allow" if updated is None else "rewrite"
    if updated is None and not _may_say(event, saying, persons):
        return no_opinion(event)
    return _say(event, saying, reason=reason, context=context, updated=updated, persons=persons)


def ask(event: Event, reason: str, context: str = "") -> Reply:
    """Let the agent ask its person."""
    # INVARIANT: an ask is only sent to an agent that understands it; others would just run the tool.
    if not can_ask(event):
        raise InputError(f"{dialect(event.agent).title} cannot ask by itself.")
    return _say(event, "ask", reason=reason, context=context)


def deny(event: Event, reason: str, context: str = "") -> Reply:
    """Refuse the call, in three ways at once: the agents' own words, stderr, and the exit status.

    INVARIANT: a refusal is never lost; an event without its own words for it is refused by exit status.
    """
    answer = _answer(event, "deny") or _answer(event, "block") or _REFUSAL
    # Gemini CLI runs the tool when an exit status of 2 comes without a word on stderr.
    reason = reason if reason.strip() else "Refused by Checkrein."
    return _filled_in(event, answer, reason=reason, context=context)


def refuse_unread(agent: str, reason: str) -> Reply:
    """Refuse what came to a gate and could not be read."""
    gate = dialect(agent).gate if agent in _KNOWN else ""
    return deny(Event(agent=agent, name=gate, kind="call"), reason)


def permission(
    event: Event, approved: bool, message: str = "", updated: dict[str, Any] | None = None
) -> Reply:
    """A person's answer to the agent's own permission question."""
    return allow(event, persons=True, updated=updated) if approved else deny(event, message)


def block(event: Event, reason: str) -> Reply:
    """Stop what is not a call: a prompt, a slash command, a change of settings."""
    return deny(event, reason)


def inform(event: Event, context: str) -> Reply:
    """Tell the model something, where the agent has a way to; otherwise say nothing."""
    return _say(event, "inform", context=context) if context and _answer(event, "inform") else silent()


def silent() -> Reply:
    """No opinion: the agent goes on as if there were no hook."""
    return Reply()


def no_opinion(event: Event) -> Reply:
    """The same about a call: some agents take empty output for a failure."""
    return Reply(stdout=dialect(event.agent).silence.encode())


def can_ask(event: Event) -> bool:
    """Whether the agent asks its person about a call when it is told to, in the mode it is in."""
    return dialect(event.agent).meaning("call", event.mode, "ask") in HEEDED


def can_rewrite(event: Event, updated: dict[str, Any] | None = None, *, persons: bool = False) -> bool:
    """Whether an allow of this event can change the input, to exactly `updated` if given.

    `persons`: the change is a person's own.
    """
    table = dialect(event.agent)
    if _answer(event, "rewrite") is None or event.name in table.implied:
        return False
    if not _may_say(event, "rewrite", persons):
        return False
    return table.rewrite != "merge" or updated is None or event.arguments.keys() <= updated.keys()


def _may_say(event: Event, saying: Saying, persons: bool) -> bool:
    table = dialect(event.agent)
    meaning: Meaning = table.meaning(table.events.get(event.name, "other"), event.mode, saying)
    # INVARIANT: nothing but a person's own word overrules an agent's own checks.
    if meaning == "grant":
        return persons
    # INVARIANT: an agent is not told to run a call in words nobody has seen the effect of.
    return meaning != "unknown"


def _answer(event: Event, saying: Saying) -> Answer | None:
    if event.agent not in _KNOWN:
        return None
    table = dialect(event.agent)
    return table.replies.get(table.events.get(event.name, "other"), {}).get(saying)


def _say(
    event: Event,
    saying: Saying,
    *,
    reason: str = "",
    context: str = "",
    updated: dict[str, Any] | None = None,
    persons: bool = False,
) -> Reply:
    table, answer = dialect(event.agent), _answer(event, saying)
    # INVARIANT: what runs is what was approved; a change the agent would not make is never allowed.
    if updated is not None and not can_rewrite(event, updated, persons=persons):
        raise InputError(f"{table.title} cannot be given this changed input.")
    if answer is None:
        raise InputError(f"{table.title} has no answer {saying!r} to {event.name[:80]!r}.")
    return _filled_in(event, answer, reason=reason, context=context, updated=updated)


def _filled_in(
    event: Event,
    answer: Answer,
    *,
    reason: str = "",
    context: str = "",
    updated: dict[str, Any] | None = None,
) -> Reply:
    longest = dialect(event.agent).longest_text if event.agent in _KNOWN else LONGEST_TEXT
    words: dict[str, Any] = {
        "$event": event.name,
        "$reason": _short(reason, longest),
        "$context": _short(context, longest),
        "$updated": updated,
    }
    if answer.needs and not words[answer.needs]:
        return silent()
    return Reply(
        stdout=_json(_filled(answer.stdout, words)),
        stderr=(words[answer.stderr] + "\n").encode() if answer.stderr else b"",
        exit_code=answer.exit,
    )


def _json(whole: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(whole) if whole else b""
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"The changed input cannot be written as JSON: {error}.") from None


def _filled(part: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """The part with its placeholders replaced, without those that nothing was given for."""
    whole: dict[str, Any] = {}
    for key, value in part.items():
        if isinstance(value, dict):
            given: Any = _filled(value, words) or None
        else:
            given = words.get(value, value) if isinstance(value, str) else value
        if given is not None and given != "":
            whole[key] = given
    return whole


def _short(text: str, longest: int) -> str:
    # A reason may quote what no UTF-8 can hold; an answer must be sent all the same.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
