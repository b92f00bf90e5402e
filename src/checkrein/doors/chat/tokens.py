"""Counts tokens offline: of a text, a message, a conversation, and what each share of a context takes.

Compression and the console ask it. It never downloads anything, and an estimate always says that it is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal, Protocol

import msgspec

from checkrein.doors.chat import Message, Part
from checkrein.errors import InputError

Encoding = Literal["cl100k", "o200k"]
DEFAULT: Encoding = "o200k"
# What a message costs besides its text: its role and the marks around it.
OVERHEAD = 5
# A file that is not text costs what its provider makes of it; about one large picture is assumed.
LONGEST_RESULT = 200_000
_CUT = "\n[The rest is left out: {} more characters.]"
ATTACHED = 1_600
# No model takes in a text as long as this, and one without a space in it would be counted for seconds.
LONGEST = 4_000_000
_NAMES: dict[str, Encoding] = {
    "cl100k": "cl100k",
    "cl100k_base": "cl100k",
    "o200k": "o200k",
    "o200k_base": "o200k",
}
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r\n"
_BEYOND_ASCII = bytes(range(128, 256))


class Count(msgspec.Struct, frozen=True):
    """A number of tokens; estimated when the tokeniser is missing, is not the model's, or cannot see it."""

    tokens: int
    estimated: bool = False

    def __add__(self, other: Count) -> Count:
        return Count(self.tokens + other.tokens, self.estimated or other.estimated)


class ConversationCount(msgspec.Struct, frozen=True):
    """What a conversation takes, and what its answer is likely to."""

    total_tokens: int
    estimated_response_tokens: int
    estimated: bool = False


class Breakdown(msgspec.Struct, frozen=True):
    """What each share of a context takes. `system` is the instructions and system messages."""

    system: int = 0
    summary: int = 0
    messages: int = 0
    tools: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.system + self.summary + self.messages + self.tools


class _Tokeniser(Protocol):
    def encode_ordinary(self, text: str) -> Sequence[int]: ...


def count(text: str, encoding: str = DEFAULT) -> int:
    """The tokens of a text; `counted` also says whether the number is an estimate."""
    return counted(text, encoding).tokens


def counted(text: str, encoding: str = DEFAULT) -> Count:
    tokeniser = _tokeniser(named(encoding))
    if tokeniser is None or len(text) > LONGEST:
        return Count(estimate(text), estimated=bool(text))
    # INVARIANT: a control token spelled out in a text is text, never a control token.
    try:
        return Count(len(tokeniser.encode_ordinary(text)))
    except UnicodeEncodeError:
        # Half of a surrogate pair has no bytes of its own; providers are sent a mark in its place.
        return Count(len(tokeniser.encode_ordinary(text.encode("utf-8", "replace").decode("utf-8"))))


def exact() -> bool:
    """Whether the tokeniser is installed, so that counts are no estimates."""
    return _tokeniser(DEFAULT) is not None


def named(encoding: str) -> Encoding:
    """An encoding by any of its names."""
    found = _NAMES.get(encoding)
    if found is None:
        raise InputError(
            f"`{encoding[:40]}` is no encoding whose tokens can be counted.",
            remedy="Use o200k or cl100k.",
        )
    return found


def estimate(text: str) -> int:
    """About how many tokens a text has, rather too many than too few: words are cheap, marks are not."""
    raw = text.encode("utf-8", "replace")
    ascii_only = raw.translate(None, _BEYOND_ASCII)
    marks = len(ascii_only.translate(None, _LETTERS))
    letters = len(ascii_only) - marks
    return -(-(letters * 3 + marks * 6 + (len(raw) - len(ascii_only)) * 4) // 12)


def spoken(part: Part) -> str:
    """What of a part a model is sent, as text; facts that are only kept for the record are not sent."""
    if part.kind == "metadata":
        return ""
    if part.kind == "attachment":
        return part.text
    data = "" if part.data is None else written(part.data)
    if part.kind == "tool_result":
        # A result's text stands for its data: pictures go beside it, not as letters.
        return "\n".join(cut(each) for each in (part.text or data, part.error) if each)
    name = part.tool_name if part.kind == "tool_invocation" else ""
    return "\n".join(each for each in (name, part.text, data) if each)


def cut(text: str) -> str:
    """What of a tool's text a model is sent; all of it is kept."""
    over = len(text) - LONGEST_RESULT
    return text if over <= 0 else text[:LONGEST_RESULT] + _CUT.format(f"{over:,}")


def _pictures(part: Part) -> int:
    items = part.data.get("content") if part.kind == "tool_result" and isinstance(part.data, dict) else None
    rows = items if isinstance(items, list) else []
    return sum(isinstance(each, dict) and each.get("type") == "image" for each in rows)


def written(data: Any) -> str:
    """A value as models are sent it: text as it is, anything else as JSON. Never raises."""
    if isinstance(data, str):
        return data
    try:
        return msgspec.json.encode(data, enc_hook=str).decode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, default=str)
    except RecursionError:
        return "(nested too deeply to be shown)"


def count_message(message: Message, encoding: str = DEFAULT) -> Count:
    """The text of its parts and five tokens over it."""
    total = Count(OVERHEAD)
    for part in message.parts:
        if part.kind == "attachment" and not part.text:
            total += Count(ATTACHED, estimated=True)
            continue
        if shown := _pictures(part):
            total += Count(ATTACHED * shown, estimated=True)
        if text := spoken(part):
            total += counted(text, encoding)
    return total


def count_conversation(
    messages: Iterable[Message], *, output_limit: int, encoding: str = DEFAULT, approximate: bool = False
) -> ConversationCount:
    """All messages; `approximate` where the encoding is not the model's own."""
    total = sum((count_message(each, encoding) for each in messages), Count(0))
    response = estimated_response_tokens(total.tokens, output_limit)
    return ConversationCount(total.tokens, response, total.estimated or approximate)


def estimated_response_tokens(total: int, output_limit: int) -> int:
    """A tenth of what is sent, never more than the model can answer."""
    return min(total // 10, output_limit)


def count_tools(definitions: Sequence[Any], encoding: str = DEFAULT) -> Count:
    """What the tool definitions take that go with every request."""
    return counted(written(list(definitions)), encoding) if definitions else Count(0)


def breakdown(
    context: Iterable[Message],
    *,
    instructions: str = "",
    tools: Sequence[Any] = (),
    encoding: str = DEFAULT,
    approximate: bool = False,
) -> Breakdown:
    """What each share of a context takes; the shares add up to what is sent."""
    system = Count(OVERHEAD) + counted(instructions, encoding) if instructions else Count(0)
    summary, rest = Count(0), Count(0)
    for message in context:
        size = count_message(message, encoding)
        if message.summary:
            summary += size
        elif message.role == "system":
            system += size
        else:
            rest += size
    offered = count_tools(tools, encoding)
    estimated = (system + summary + rest + offered).estimated or approximate
    return Breakdown(system.tokens, summary.tokens, rest.tokens, offered.tokens, estimated)


@cache
def _tokeniser(encoding: Encoding) -> _Tokeniser | None:
    try:
        import splintr
    except ImportError:
        return None
    found: _Tokeniser = splintr.Tokenizer.from_pretrained(f"{encoding}_base")
    return found
