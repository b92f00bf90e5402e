"""Notices in words: the real command, how dangerous it is, and how to answer. Pure.

What is quoted was written by an agent: it stays on its own marked lines, drives nothing that shows it, and
has an end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from checkrein.approval.channels import Notice
from checkrein.call import canonical

LONGEST_TITLE = 100
LONGEST_BODY = 1_800
_LONGEST_QUOTE = 900
_LONGEST_LINE = 160
_MOST_LISTED = 8
_MOST_LINES = 24
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Letters and signs that show nothing.
_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# What a chat program would act on: calling everybody in the room, naming somebody, a link under other words.
_ACTS = re.compile(r"(?<=<)(?=[@!#])|(?<=@)(?=(?:everyone|here|channel|all|room)\b)|(?<=\])(?=\()", re.I)
_TITLES = {
    "asked": "An agent asks",
    "expiring": "A question is about to expire",
    "blocked": "A critical call was blocked",
}


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a notice is about, masked as the ledger keeps it."""

    event: str
    id: str
    tool: str
    input: Any
    risk: str
    agent: str
    session: str
    project: str
    summary: str = ""
    reasons: Sequence[str] = ()
    expires_at: str = ""


def visible(text: str, most: int) -> str:
    """One line of hostile text: what cannot be seen is spelled out, what is too long ends."""
    # Cut before and after: a long text is never worked on as a whole, and escapes count too.
    shown = "".join(_spelled(char) for char in text[:most])
    shown = _ACTS.sub(" ", shown)
    if len(shown) > most or len(text) > most:
        # Of the whole text, so that a person knows how much is not there.
        return f"{shown[:most]}… [{len(text)} characters]"
    return shown


def _spelled(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    if unicodedata.category(char) not in _UNSEEN and char not in _EMPTY:
        return char
    code = ord(char)
    return {9: " ", 10: "\\n", 13: "\\r"}.get(code) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"
    )


def quoted(value: Any) -> str:
    """A call's arguments, every line marked: no line of an agent's can be taken for one of ours."""
    text = _told(value)
    lines = text[:_LONGEST_QUOTE].split("\n")
    shown = [f"| {visible(line, _LONGEST_QUOTE)}" for line in lines[:_MOST_LINES]]
    if len(text) > _LONGEST_QUOTE or len(lines) > _MOST_LINES:
        shown.append(f"… {len(text)} characters in all")
    return "\n".join(shown)


def _told(value: Any) -> str:
    """The command where there is one, else all arguments as JSON."""
    command = value.get("command") if isinstance(value, Mapping) else value
    text = command if isinstance(command, str) else canonical(value).decode(errors="backslashreplace")
    # Half a surrogate pair is no text to anybody but us.
    return text.encode(errors="backslashreplace").decode()


def notice(subject: Subject, console: str = "") -> Notice:
    """One question, reminder or refusal."""
    head = f"{_TITLES[subject.event]}: {visible(subject.tool, 40)} ({visible(subject.risk, 10)} risk)"
    lines = [visible(subject.summary, 300)] if subject.summary else []
    lines += [quoted(subject.input), _where(subject)]
    if subject.reasons:
        lines.append(f"Why: {visible(subject.reasons[0], _LONGEST_LINE)}")
    facts = _facts(subject) | ({"console": console} if console else {})
    return Notice(subject.event, head[:LONGEST_TITLE], _bounded(lines, _how(subject, console)), facts)


def gathered(subjects: Sequence[Subject], console: str = "") -> Notice:
    """Many of one kind at once, as one notice: the first few by name, the rest by number."""
    first = subjects[0]
    if len(subjects) == 1:
        return notice(first, console)
    many = {"asked": "questions wait", "expiring": "questions are about to expire"}
    title = f"{len(subjects)} {many.get(first.event, 'critical calls were blocked')}"
    lines = [
        f"{visible(each.id, 32)} {visible(each.tool, 40)} ({visible(each.risk, 10)}): "
        f"{visible(' '.join(_told(each.input).split()), 80)}"
        for each in subjects[:_MOST_LISTED]
    ]
    left = len(subjects) - _MOST_LISTED
    lines += [f"… and {left} more"] if left > 0 else []
    lines.append(_where(first))
    how = ["See: checkrein audit list"] if first.event == "blocked" else ["Answer: checkrein inbox"]
    how += [f"Console: {console}"] if console else []
    facts = {"many": [_facts(each) for each in subjects[:_MOST_LISTED]], "count": len(subjects)}
    return Notice(first.event, title, _bounded(lines, how), facts | ({"console": console} if console else {}))


def _where(subject: Subject) -> str:
    agent = visible(subject.agent, 40) or "an agent"
    return f"By {agent} in {visible(subject.project, _LONGEST_LINE) or '(no project)'}"


def _how(subject: Subject, console: str) -> list[str]:
    """How to answer; a blocked call waits for nothing."""
    number = visible(subject.id, 32)
    if subject.event == "blocked":
        return [f"See: checkrein audit show {number}"]
    lines = [f"Yes: checkrein approve {number}", f"No: checkrein deny {number}"]
    lines += [f"Console: {console}"] if console else []
    return [*lines, f"Counts as no at {subject.expires_at}"] if subject.expires_at else lines


def _bounded(lines: Sequence[str], how: Sequence[str]) -> str:
    """How to answer stands at the end and is never what is cut."""
    text, end = "\n".join(lines), "\n".join(how)
    room = LONGEST_BODY - len(end) - 1
    return f"{text}\n{end}" if len(text) <= room else f"{text[: room - 2]}\n…\n{end}"


def _facts(subject: Subject) -> dict[str, Any]:
    """The same for programs, which quote for themselves; bounded all the same."""
    return {
        "id": subject.id,
        "tool": subject.tool[:200],
        "input": _told(subject.input)[:8_192],
        "risk": subject.risk,
        "agent": subject.agent[:200],
        "session": subject.session[:200],
        "project": subject.project[:4_096],
        "summary": subject.summary[:1_000],
        "reasons": [reason[:500] for reason in subject.reasons[:5]],
        "expires_at": subject.expires_at,
        "approve": f"checkrein approve {subject.id}",
    }
