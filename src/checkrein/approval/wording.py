"""What the model and the person read when a call is refused, asked about or answered: what, why, what now."""

from __future__ import annotations

from checkrein.call import ToolCall, Verdict, reason_lines

_LONGEST_TITLE = 160
_LONGEST_LINE = 600
_MOST_REASONS = 6
# Arguments that say best what a call is about.
_TELLING = ("command", "cmd", "file_path", "path", "notebook_path", "url", "query", "pattern", "description")


def title(call: ToolCall) -> str:
    """A call in one line: `Bash: git push origin main`."""
    tool = plain(call.name, _LONGEST_TITLE)
    for name in _TELLING:
        value = call.arguments.get(name)
        if isinstance(value, str) and value:
            return f"{tool}: {plain(value, _LONGEST_TITLE)}"
    return tool


def refusal(call: ToolCall, verdict: Verdict, entry: str) -> str:
    """What was refused, how risky it is, why, and what would make it possible."""
    if verdict.stage == "arguments":
        return misspelled(call, verdict, entry)
    return "\n".join(
        [
            f"Checkrein refused this call. {title(call)}",
            f"Risk: {_risk(verdict)}. Decision: {verdict.decision} (by {verdict.stage}).",
            *_because(verdict),
            *([f"What helps: {verdict.remedy}"] if verdict.remedy else []),
            f"Do not try another way to do the same; tell the user instead. (record {entry})",
        ]
    )


def misspelled(call: ToolCall, verdict: Verdict, entry: str) -> str:
    """The call does not fit the tool's own description: nothing to ask a person about, only to correct."""
    return "\n".join(
        [
            f"This call does not fit its tool, so nothing ran. {title(call)}",
            *_because(verdict),
            f"Correct the arguments and call it again. (record {entry})",
        ]
    )


def question(call: ToolCall, verdict: Verdict, entry: str) -> str:
    """What a person reads in the agent's own dialog."""
    return "\n".join(
        [
            f"Checkrein asks: {verdict.risk.category.name} risk. {title(call)}",
            *_because(verdict),
            f"(record {entry})",
        ]
    )


def unreachable(call: ToolCall, verdict: Verdict, entry: str) -> str:
    """Nobody could be asked."""
    return "\n".join(
        [
            f"Checkrein needs a person's yes for this call, and nobody can be reached. {title(call)}",
            f"Risk: {_risk(verdict)}. Decision: {verdict.decision} (by {verdict.stage}).",
            *_because(verdict),
            "What helps: a person keeps `checkrein inbox` open in a terminal and the call is tried again, "
            "or writes a rule (`checkrein rules add`).",
            f"(record {entry})",
        ]
    )


def answered(call: ToolCall, verdict: Verdict, entry: str, state: str, who: str, message: str) -> str:
    """A person said no, or did not answer in time."""
    said = {
        "denied": f"{who or 'A person'} said no to this call.",
        "expired": "Nobody answered in time, so this call counts as refused.",
        "answered": f"{who or 'A person'} answers for the tool, which did not run.",
        "cancelled": "The question about this call was withdrawn.",
    }[state]
    return "\n".join(
        [
            f"{said} {title(call)}",
            *([f"They say: {message}"] if message else []),
            f"Risk: {_risk(verdict)}.",
            f"Do not try another way to do the same; tell the user instead. (record {entry})",
        ]
    )


def _risk(verdict: Verdict) -> str:
    return verdict.risk.category.name if verdict.risk.judged else "not judged"


def _because(verdict: Verdict) -> list[str]:
    lines = [plain(line, _LONGEST_LINE) for line in reason_lines(verdict.reasons)]
    more = [f"- … and {len(lines) - _MOST_REASONS} more"] if len(lines) > _MOST_REASONS else []
    return [f"- {line}" for line in lines[:_MOST_REASONS]] + more


def plain(text: str, longest: int) -> str:
    """One line of what can be seen.

    INVARIANT: what an agent wrote adds no line to ours, and nothing in it is hidden, moved or coloured.
    """
    text = " ".join(text[: 8 * longest].split()) + ("…" if len(text) > 8 * longest else "")
    shown = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
