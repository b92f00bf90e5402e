"""What a server says about itself, read without trust: a name that can be used, a hash, or what is wrong.

The catalogue reads every raw definition through here. Nothing in this module decides what is offered.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from checkrein.call import is_deep

Kind = Literal["tool", "prompt", "instructions"]
KINDS: tuple[Kind, ...] = ("tool", "prompt", "instructions")
LONGEST_OFFERED = 128
LARGEST_DEFINITION = 512 << 10
DEEPEST = 64
LONGEST_SHOWN = 20_000
MOST_DIFF_LINES = 400
_LONGEST_LINE = 600
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,96}")
_LONGEST_NAME = 96
_BREAK = "\n        | "
# Controls, what is half a character or none, direction changers, and everything else that shows nothing.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_canonical = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Definition(msgspec.Struct, frozen=True):
    """One tool, prompt or set of instructions. `fault`: why it can never be offered as it is.

    `text` is its canonical form, which is hashed and kept; `original` has the fields in the server's order.
    """

    server: str
    kind: Kind
    name: str
    hash: str
    text: str
    fault: str = ""
    original: bytes = b""

    @property
    def offered(self) -> str:
        return f"{self.server}__{self.name}"

    @property
    def value(self) -> Any:
        """A copy of its own, in the server's order: what its list becomes later does not change it."""
        # INVARIANT: what is offered is what was accepted, in the order of its server.
        return _decode(self.original or self.text)


def read(server: str, kind: Kind, raw: Any) -> Definition:
    """A definition as it came. Never raises: what cannot be used says why."""
    try:
        text, original = _canonical(raw), _encode(raw)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        return Definition(server, kind, "", "", "", "It cannot be read.")
    name = raw.get("name") if isinstance(raw, dict) else None
    return Definition(
        server,
        kind,
        name if isinstance(name, str) else "",
        hashlib.sha256(text).hexdigest(),
        text.decode(),
        _fault(server, kind, raw, name, len(text)),
        b"" if original == text else original,
    )


def _fault(server: str, kind: Kind, raw: Any, name: Any, size: int) -> str:
    if size > LARGEST_DEFINITION:
        return f"It is larger than {LARGEST_DEFINITION:,} bytes."
    if kind == "instructions":
        return "" if isinstance(raw, str) else "It is no text."
    if not isinstance(raw, dict):
        return "It is no object."
    if not isinstance(name, str) or not _is_name(kind, name):
        return "It has no usable name."
    if len(server) + 2 + len(name) > LONGEST_OFFERED:
        return f"Its name with the server's is longer than {LONGEST_OFFERED} characters."
    if is_deep(raw, DEEPEST):
        return "It is nested too deeply."
    if kind == "tool" and not isinstance(raw.get("inputSchema", {}), dict):
        return "Its inputSchema is no object."
    return ""


def _is_name(kind: Kind, name: str) -> bool:
    if kind == "tool":
        return _TOOL_NAME.fullmatch(name) is not None
    return 0 < len(name) <= _LONGEST_NAME and name == name.strip() and not UNSEEN.search(name)


def texts(value: Any) -> Iterator[str]:
    """Every text in a value, names of fields too."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += [*each.values(), *each]
        elif isinstance(each, list):
            waiting += each


def legible(text: str, most: int) -> str:
    """Hostile text for a person's eyes: what cannot be seen is spelled out, what is too long ends."""
    shown = UNSEEN.sub(_spelled, text[:most])
    if len(shown) > most or len(text) > most:
        return f"{shown[:most]}… [{len(text)} characters]"
    return shown


def _spelled(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"


def lines(text: str) -> list[str]:
    """A stored definition as lines for a person: fields in order, texts with their own line breaks."""
    try:
        value = _decode(text)
        if not isinstance(value, str):
            # Lines of a text are marked: no description can pass for a field beside it.
            value = msgspec.json.format(text, indent=2)[: LONGEST_SHOWN * 4].replace("\\n", _BREAK)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        value = text
    return [legible(line, _LONGEST_LINE) for line in value[: LONGEST_SHOWN * 4].split("\n")]


def shown(text: str) -> str:
    """A definition as a person reads it; ends after `LONGEST_SHOWN` characters."""
    whole = "\n".join(lines(text))
    return whole if len(whole) <= LONGEST_SHOWN else f"{whole[:LONGEST_SHOWN]}\n… [{len(text)} characters]"


def diff(before: str, after: str) -> list[str]:
    """What changed between two versions, as lines marked `-` and `+`."""
    old, new = lines(before)[:MOST_DIFF_LINES], lines(after)[:MOST_DIFF_LINES]
    found = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    if not found:
        return ["They differ only beyond what is shown here."]
    more = len(found) - MOST_DIFF_LINES
    return [*found[:MOST_DIFF_LINES], f"… {more} more lines"] if more > 0 else found
