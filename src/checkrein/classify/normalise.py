"""What bash would not see the way we do: looked for in the raw text, before anything is parsed.

Called first on every shell line; what it finds keeps a line from being low.
"""

from __future__ import annotations

import re

MAX_LENGTH = 48_000
"""Longer lines are not read at all: they are a cap, not a verdict of harmlessness."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_BLANK_LOOKALIKE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_PRIVATE = re.compile("[\ue000-\uf8ff\ud800-\udfff]")
_JOINED_WORD = re.compile(r"(?<![\s\\])(?:\\\\)*\\\n(?!\s)")
_LINE_JOIN = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")


def normalise(text: str) -> tuple[str, list[str]]:
    """The text as bash reads it, and what in it could fool a reader (in plain words)."""
    if text.isascii() and text.isprintable():
        return text, []
    problems = []
    if _CONTROL.search(text):
        problems.append("it contains control characters, which terminals hide and bash does not")
    if not text.isascii():
        if _INVISIBLE.search(text):
            problems.append("it contains invisible characters")
        if _BLANK_LOOKALIKE.search(text):
            problems.append("it contains characters that look like blanks but are not")
        if _PRIVATE.search(text):
            problems.append("it contains private-use characters")
            text = _PRIVATE.sub("\ufffd", text)
    if "\\\n" in text:
        if _JOINED_WORD.search(text):
            problems.append("a word is broken over two lines")
        if "#" in text or "<<" in text:
            # INVARIANT: a comment or a quoted here-document ends with its line, backslash or not.
            problems.append("a line is continued beside a comment or a here-document")
        elif "'" not in text:
            text = _LINE_JOIN.sub(r"\1", text)
    return text, problems
