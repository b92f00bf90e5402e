"""File changes as lines a person can compare: edits, whole files, patches. Pure."""

from __future__ import annotations

import difflib

Line = tuple[str, str]

_PATCH_STARTS = ("*** Begin Patch", "--- ", "diff --git ", "Index: ")
_CONTEXT = 3
# Beyond this a diff is not computed: its time grows with the product of both sides.
_MOST_LINES = 2_000
_MOST_WRITTEN = 400
# Beyond this lines are not told apart any more; they are all there.
_MOST_TOLD_APART = 600


def changed(old: str, new: str) -> tuple[Line, ...]:
    """What an edit takes out and puts in."""
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > _MOST_LINES:
        return _bounded([f"-{each}" for each in before] + [f"+{each}" for each in after])
    found = list(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]
    return _bounded(found) or (("place", "nothing changes"),)


def written(content: str) -> tuple[Line, ...]:
    """A whole file as it will be."""
    lines = content.split("\n")
    shown = [("in", f"+{each}") for each in lines[:_MOST_WRITTEN]]
    more = len(lines) - _MOST_WRITTEN
    return (*shown, ("place", f"… {more} more lines")) if more > 0 else tuple(shown)


def patched(text: str) -> tuple[Line, ...]:
    """A patch in any of the usual spellings."""
    return _bounded(text.split("\n"))


def is_patch(text: str) -> bool:
    return text.lstrip().startswith(_PATCH_STARTS) and "\n" in text


def _bounded(lines: list[str]) -> tuple[Line, ...]:
    apart, rest = lines[:_MOST_TOLD_APART], lines[_MOST_TOLD_APART:]
    return (*(_line(each) for each in apart), *((("", "\n".join(rest)),) if rest else ()))


def _line(text: str) -> Line:
    if text.startswith(("@@", "***", "---", "+++", "diff ", "Index: ")):
        return "place", text
    return {"+": "in", "-": "out"}.get(text[:1], ""), text
