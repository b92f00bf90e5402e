"""What a script seems to call, read from its text before it runs: shown to a person beside a question.

INVARIANT: never used for enforcement. A script can always hide a call from its reader; what it really
calls is judged one by one when it calls. An empty preview means nothing was recognised, not that nothing is
called.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

from checkrein.execute.preview_scopes import Kind, Overrun, Unreadable, Work

Language = Literal["javascript", "typescript", "python"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
MOST_BYTES = 64 << 10
# Twice what 64 KB full of calls need; hostile scripts end here. In processor time, so that what a person is
# shown does not depend on how busy the machine is.
MOST_STEPS = 4_000_000
MOST_SECONDS = 1.0


class ToolUse(msgspec.Struct, frozen=True):
    """One place where a tool is called or handed on; `tool` is None where the text does not say which."""

    tool: str | None
    line: int  # from 1
    column: int  # from 0, in code points
    kind: Kind


class Preview(msgspec.Struct, frozen=True):
    """What was found, or why nothing can be said."""

    uses: tuple[ToolUse, ...] = ()
    fault: str = ""


def extract_tool_calls(
    source: str, language: Language, tools: Collection[str] | None = None
) -> list[ToolUse]:
    """The tool calls a person would see when reading `source`; [] when it cannot be read. Never enforcement.

    `tools` are the names that count as tools when a Python script writes them bare; without them every
    undefined name of the form a__b does.
    """
    return list(preview(source, language, tools).uses)


def preview(source: str, language: Language, tools: Collection[str] | None = None) -> Preview:
    """The same, saying why where there is nothing to show. Never raises."""
    try:
        text = source.removeprefix("\ufeff").encode()
    except UnicodeEncodeError:
        return Preview(fault="The script is not valid text.")
    if len(text) > MOST_BYTES:
        return Preview(fault=f"The script is longer than {MOST_BYTES >> 10} KB.")
    try:
        found = _found(text, language, tools, Work(MOST_STEPS, MOST_SECONDS))
    except Unreadable:
        return Preview(fault=f"The script is not valid {language.title().replace('script', 'Script')}.")
    except (Overrun, RecursionError, MemoryError):
        return Preview(fault="The script is too tangled to look through.")
    return Preview(
        uses=tuple(ToolUse(_whole(tool), line, column, kind) for tool, line, column, kind in found)
    )


def _whole(tool: str | None) -> str | None:
    """A name that can be written as JSON: pairs of surrogates joined, halves replaced."""
    return tool and tool.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _found(
    text: bytes, language: Language, tools: Collection[str] | None, work: Work
) -> list[tuple[str | None, int, int, Kind]]:
    if language == "python":
        from checkrein.execute.preview_python import uses_in_python

        return uses_in_python(text, None if tools is None else frozenset(tools), work)
    from checkrein.execute.preview_script import uses_in_script

    return uses_in_script(text, work)
