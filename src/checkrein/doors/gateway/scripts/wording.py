"""What a person reads when scripts' calls are asked about: the calls, their arguments, the script itself.

One form for all calls that wait together, with a choice for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkrein.approval import wording
from checkrein.call import canonical
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.prompts import OURS
from checkrein.doors.gateway.scripts.run import Question, Script
from checkrein.execute.preview import preview

_LONGEST_ARGUMENTS, _LONGEST_LINE, _LONGEST_MESSAGE = 4_000, 200, 2_000
_AROUND, _MOST_LINES, _MOST_OTHERS = 3, 60, 20
LONG_ARGUMENTS = 600


def form(script: Script, questions: Sequence[Question], who: str, summaries: dict[int, str]) -> Message:
    """The params of our elicitation about these calls."""
    several = len(questions) > 1
    what = f"{len(questions)} calls" if several else "a call"
    lines = [f"{OURS}: may the script of {wording.plain(who, 80) or 'this client'} make {what}?"]
    for number, each in enumerate(questions, start=1):
        lines += _about(number, each, summaries.get(each.wanted.id, ""))
    lines += ["", "The script (calls that wait are marked):", *marked(script.source, questions)]
    lines += _others(script, questions)
    properties: Message = {
        f"call_{number}": {
            "type": "boolean",
            "title": f"Run call {number}: {_name(each)}",
            "default": not several,
        }
        for number, each in enumerate(questions, start=1)
    }
    properties["message"] = {
        "type": "string",
        "title": "A word to the model (optional)",
        "maxLength": 500,
    }
    required = [key for key in properties if key != "message"] if several else []
    return {
        "mode": "form",
        "message": "\n".join(lines),
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    }


def choices(result: Any, count: int) -> tuple[list[bool], str]:
    """What came back: a yes or no for each call, and a word to the model."""
    found = result if isinstance(result, dict) else {}
    content = found.get("content")
    given = content if isinstance(content, dict) else {}
    said = given.get("message")
    message = said[:_LONGEST_MESSAGE] if isinstance(said, str) else ""
    # INVARIANT: only the word accept is a yes, and of several calls only to those that were ticked.
    if found.get("action") != "accept":
        return [False] * count, message
    if count == 1:
        return [given.get("call_1", True) is True], message
    return [given.get(f"call_{number}") is True for number in range(1, count + 1)], message


def marked(source: str, questions: Sequence[Question]) -> list[str]:
    """The script with the lines of the calls marked; long ones are shown around them."""
    lines = source.splitlines() or [""]
    at = {each.wanted.line for each in questions}
    if len(lines) <= _MOST_LINES:
        wanted = set(range(1, len(lines) + 1))
    else:
        wanted = {line for here in at for line in range(here - _AROUND, here + _AROUND + 1)}
    shown, last = [], 0
    for number, text in enumerate(lines, start=1):
        if number not in wanted:
            continue
        if number > last + 1:
            shown.append("     …")
        last = number
        mark = ">" if number in at else " "
        # INVARIANT: no line of a script begins like a question of ours, and nothing in it is hidden.
        shown.append(f"{mark} {number:>3} | {_visible(text)}")
    return shown if last == len(lines) else [*shown, "     …"]


def waiting(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Calls that wait, as a client reads them."""
    return [
        {
            "tool": _name(each),
            "question": each.entry,
            "line": each.wanted.line,
            "why": wording.plain(each.verdict.reasons[0].text, 300) if each.verdict.reasons else "",
        }
        for each in questions
    ]


def _about(number: int, question: Question, summary: str) -> list[str]:
    call, verdict = question.call, question.verdict
    whole = canonical(call.arguments).decode("utf-8", "replace")
    arguments = wording.plain(whole, _LONGEST_ARGUMENTS)
    line = f" (line {question.wanted.line})" if question.wanted.line else ""
    lines = [
        "",
        f"{number}. `{call.tool}` of server `{call.server}`{line}",
        f"   Arguments: {arguments}",
    ]
    if arguments.endswith("…"):
        lines.append(
            f"   (They go on: {len(whole.encode()):,} bytes in all; `checkrein audit show {question.entry}`.)"
        )
    if summary:
        lines.append(f"   A model's summary of them (not checked): {wording.plain(summary, 500)}")
    lines += [f"   {each}" for each in wording.question(call, verdict, question.entry).splitlines()]
    return lines


def _others(script: Script, questions: Sequence[Question]) -> list[str]:
    asked = {each.wanted.name for each in questions}
    found = preview(script.source, script.language, set(script.names))
    if found.fault:
        return ["", f"What else it may call cannot be said: {found.fault}"]
    names = sorted({each.tool for each in found.uses if each.tool and each.tool not in asked})
    hidden = sum(each.tool is None for each in found.uses)
    lines = []
    if names:
        more = f" and {len(names) - _MOST_OTHERS} more" if len(names) > _MOST_OTHERS else ""
        lines += [
            "",
            f"It may also call: {', '.join(_visible(each) for each in names[:_MOST_OTHERS])}{more}.",
        ]
    if hidden:
        lines.append(f"{hidden} of its calls cannot be predicted.")
    return lines


def _name(question: Question) -> str:
    return wording.plain(f"{question.call.server}__{question.call.tool}", 160)


def _visible(text: str) -> str:
    shown = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text[:_LONGEST_LINE])
    return f"{shown}…" if len(text) > _LONGEST_LINE else shown
