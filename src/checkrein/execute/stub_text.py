"""Words of servers made fit to stand in code: comments nothing gets out of, and quoted strings.

Called by the stub writers. Descriptions are hostile text: what leaves here is one printable line.
"""

from __future__ import annotations

import re

LONGEST_SIGNATURE = 8000
_LONGEST_RAW, LONGEST, LONGEST_SENTENCE = 8000, 2000, 160
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?](?=\s)|\n\s*\n|\n(?=\s*[A-Z*#\-])")
_FENCE = re.compile(r"`{3,}|~{3,}")
# Words that tools for Python take from comments as orders.
_ORDERS = re.compile(r"\b(type|ty|mypy|pyright|pylint|ruff|noqa|coding)(\s*[:=])", re.IGNORECASE)


def whole(text: object, longest: int = LONGEST) -> str:
    """A description on one line."""
    if not isinstance(text, str):
        return ""
    cut = text[:_LONGEST_RAW]
    # INVARIANT: no line break, control, invisible or direction-changing character, nor half a character.
    printable = cut if cut.isprintable() else "".join(each if each.isprintable() else " " for each in cut)
    return shortened(_FENCE.sub("'", " ".join(printable.split())), longest)


def first_sentence(text: object) -> str:
    """What a description says first."""
    if not isinstance(text, str):
        return ""
    start = text[:_LONGEST_RAW].strip()[: LONGEST_SENTENCE * 4]
    found = _END.search(start)
    return whole(start[: found.end()] if found else start, LONGEST_SENTENCE)


def shortened(text: str, longest: int) -> str:
    """At most so long, cut between words where there are any."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > longest // 2 else cut).rstrip() + "…"


def block_comment(text: str) -> str:
    """For between `/**` and `*/`."""
    # INVARIANT: a comment ends where we end it.
    return text.replace("*/", "* /").replace("/*", "/ *")


def line_comment(text: str) -> str:
    """For after `#`."""
    return _ORDERS.sub(r"\1 -", text)


def quoted(text: str, wide: str) -> str:
    """A string literal; `wide` is how the language writes a character beyond 16 bits."""
    if text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(_character(each, wide) for each in text) + '"'


def _character(character: str, wide: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if code > 0xFFFF:
        return wide.format(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
