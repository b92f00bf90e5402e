"""Typed stubs of tools for the model that writes a script, and for the type check before it runs.

Called by the eval door. Says as much as the budget allows: whole descriptions, first sentences,
signatures, names, or only how to search.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from checkrein.execute import stub_python, stub_typescript
from checkrein.execute.shapes import arguments_of
from checkrein.execute.stub_text import block_comment, first_sentence, line_comment, whole

Language = Literal["typescript", "python"]
Docs = Literal["whole", "sentence", "none"]
_DOCS: tuple[Docs, ...] = ("whole", "sentence", "none")
_LONGEST_PARAMETER = 300
_LARGEST_CHECK = 1 << 20
_TAG = " asks"


class Described(msgspec.Struct, frozen=True):
    """A tool: its script name, what its server says of it, and whether calling it asks a person."""

    name: str
    description: str = ""
    takes: Any = None
    gives: Any = None
    asks: bool = False


class Budget(msgspec.Struct, frozen=True):
    """How much a text may take up. Tokens are estimated: UTF-8 bytes / 4."""

    most: int
    unit: Literal["tokens", "characters"] = "tokens"

    @property
    def characters(self) -> int:
        """No text longer than this is allowed."""
        return self.most * 4 if self.unit == "tokens" else self.most

    def allows(self, text: str) -> bool:
        return (estimated_tokens(text) if self.unit == "tokens" else len(text)) <= self.most


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is: UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode()) // 4)


def typescript(tools: Sequence[Described], budget: Budget) -> str:
    """Declarations of `codemode` as far as they fit."""
    return _fitting(tools, budget, typescript_with, stub_typescript.COMMENT)


def python(tools: Sequence[Described], budget: Budget) -> str:
    """Function stubs as far as they fit."""
    return _fitting(tools, budget, python_with, stub_python.COMMENT)


def python_check(tools: Sequence[Described]) -> str:
    """Stubs for the type check: every tool, without words, refusing only what is surely wrong."""
    records, lines, size = stub_python.Records(), [stub_python.CHECK_HEAD], 0
    for tool in tools:
        if size < _LARGEST_CHECK:
            declared, line = stub_python.checked(tool.name, tool.takes, tool.gives, records)
        else:
            declared, line = "", stub_python.unknown(tool.name)
        size += len(declared) + len(line)
        lines.append(f"{declared}{line}\n")
    return "".join(lines)


def brief(tool: Described) -> str:
    """A name and one line."""
    said = first_sentence(tool.description)
    return f"{tool.name}{' (asks)' if tool.asks else ''}{': ' if said else ''}{said}"


def detailed(tool: Described, language: Language) -> str:
    """All there is to say of one tool."""
    return python_with([tool], "whole") if language == "python" else typescript_with([tool], "whole")


def names(tools: Sequence[Described], comment: str) -> str:
    """A line for each."""
    return "".join(f"{comment} {line_comment(brief(tool))}\n" for tool in tools)


def search_only(tools: Sequence[Described], comment: str) -> str:
    """How to find out; said whatever the budget is."""
    if not tools:
        return f"{comment} There are no tools.\n"
    many = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    return f"{comment} {many}: find them with search_tools(query), read them with get_tools(names).\n"


def typescript_with(tools: Sequence[Described], docs: Docs, room: int = sys.maxsize) -> str:
    """Declarations of all; not written to the end when there is no room for it."""
    lines: list[str] = []
    for tool in tools:
        tag = f" {stub_typescript.COMMENT}{_TAG}" if tool.asks else ""
        signature = f"  {stub_typescript.signature(tool.name, tool.takes, tool.gives)}{tag}"
        member = [*_block(_told(tool, docs)), signature]
        lines += member
        room -= sum(map(len, member))
        if room < 0:
            break
    return stub_typescript.document("\n".join(lines))


def python_with(tools: Sequence[Described], docs: Docs, room: int = sys.maxsize) -> str:
    """Functions of all; not written to the end when there is no room for it."""
    records, lines = stub_python.Records(), [stub_python.HEAD]
    for tool in tools:
        declared, line = stub_python.function(tool.name, tool.takes, tool.gives, records)
        tag = f"  {stub_python.COMMENT}{_TAG}" if tool.asks else ""
        told = [f"# {line_comment(each)}\n" for each in _told(tool, docs)]
        lines += [declared, *told, f"{line}{tag}\n"]
        room -= len(declared) + sum(map(len, told)) + len(line)
        if room < 0:
            break
    return "".join(lines)


def _block(told: list[str]) -> list[str]:
    safe = [block_comment(each) for each in told]
    if len(safe) < 2:
        return [f"  /** {each} */" for each in safe]
    return ["  /**", *(f"   * {each}" for each in safe), "   */"]


def _told(tool: Described, docs: Docs) -> list[str]:
    """What a comment says, line by line."""
    if docs == "none":
        return []
    if docs == "sentence":
        said = first_sentence(tool.description)
        return [said] if said else []
    fields = arguments_of(tool.takes).fields
    lines = [(field.name, whole(field.description, _LONGEST_PARAMETER)) for field in fields]
    said = whole(tool.description)
    return [*([said] if said else []), *(f"{whole(name)}: {text}" for name, text in lines if text)]


def _fitting(
    tools: Sequence[Described],
    budget: Budget,
    write: Callable[[Sequence[Described], Docs, int], str],
    comment: str,
) -> str:
    # Thousands of tools are not written out to learn that they are too many.
    if tools and budget.allows("".join(tool.name for tool in tools)):
        for docs in _DOCS:
            text = write(tools, docs, budget.characters)
            if budget.allows(text):
                return text
        text = names(tools, comment)
        if budget.allows(text):
            return text
    return search_only(tools, comment)
