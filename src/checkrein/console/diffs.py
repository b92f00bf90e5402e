"""File changes as lines a person can compare: edits, whole files, patches. Pure."""

from __future__ import annotations

import difflib

Line = tuple[str, str]

_PATCH_STARTS = ("*** Begin Patch", "--- ", "diff --git ", "Index: ")
_CONTEXT = 3
# Beyond this a diff is not computed: its time grows with the product of both sides.
_MOST_LINES = 2_000
_MOST_WRITTEN = 400


def changed(old: str, new: str) -> tuple[Line, ...]:
    """What an edit takes out and puts in."""
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > _MOST_LINES:
        return tuple([("out", f"-{each}") for each in before] + [("in", f"+{each}") for each in after])
    found = list(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]
    return tuple(_line(each) for each in found) or (("place", "nothing changes"),)


def written(content: str) -> tuple[Line, ...]:
    """A whole file as it will be."""
    lines = content.split("\n")
    shown = [("in", f"+{each}") for each in lines[:_MOST_WRITTEN]]
    more = len(lines) - _MOST_WRITTEN
    return (*shown, ("place", f"… {more} more lines")) if more > 0 else tuple(shown)


def patched(text: str) -> tuple[Line, ...]:
    """A patch in any of the usual spellings."""
    return tuple(_line(each) for each in text.split("\n"))


def is_patch(text: str) -> bool:
    return text.lstrip().startswith(_PATCH_STARTS) and "\n" in text


def _line(text: str) -> Line:
    if text.startswith(("@@", "***", "---", "+++", "diff ", "Index: ")):
        return "place", text
    return {"+": "in", "-": "out"}.get(text[:1], ""), text
