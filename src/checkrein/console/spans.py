"""Shell lines and JSON cut into spans, each with the kind of thing it is. Pure; for the eye only."""

from __future__ import annotations

import re

Span = tuple[str, str]
# Longer texts are shown plain: an agent must not keep the server busy with colours.
LONGEST = 8_000

_SHELL = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>(?:(?<=\s)|^)\#[^\n]*)
    |(?P<string>\$?'[^']*'?|"(?:\\.|[^"\\])*"?)
    |(?P<variable>\$\{[^}\n]*\}?|\$\w+|\$[@*\#?$!-])
    |(?P<operator>&&|\|\||;;|\|&|[|;&(){}]|\$\(|`|\d?>>?&?\d?|<<?<?-?)
    |(?P<word>(?:\\.|[^\s'"$|;&(){}`<>\\])+|\\|\$)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_STARTERS = frozenset({"&&", "||", "|", "|&", ";", ";;", "&", "(", "{", "$(", "`"})
_KEYWORDS = frozenset(
    "if then elif else fi for while until do done case esac in function time sudo env xargs exec".split()
)
_JSON = re.compile(
    r"""(?P<key>"(?:\\.|[^"\\])*"(?=\s*:))
    |(?P<string>"(?:\\.|[^"\\])*"?)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<word>\btrue\b|\bfalse\b|\bnull\b)""",
    re.VERBOSE,
)


def shell_spans(text: str) -> tuple[Span, ...]:
    """Commands, flags, strings, variables and operators of a shell line."""
    if len(text) > LONGEST:
        return (("", text),)
    spans: list[Span] = []
    starting = True
    for found in _SHELL.finditer(text):
        kind, piece = found.lastgroup or "", found[0]
        if kind == "word":
            kind = _word(piece, starting)
            starting = kind in ("keyword", "assignment")
        elif kind == "operator":
            starting = piece in _STARTERS
        elif kind == "space":
            kind = ""
            starting = starting or "\n" in piece
        else:
            starting = False
        _add(spans, kind, piece)
    return tuple(spans)


def _word(piece: str, starting: bool) -> str:
    if starting and piece in _KEYWORDS:
        return "keyword"
    if starting and re.match(r"\w+=", piece):
        return "assignment"
    if starting:
        return "command"
    return "flag" if piece.startswith("-") else ""


def json_spans(text: str) -> tuple[Span, ...]:
    """Keys, strings, numbers and words of pretty JSON."""
    if len(text) > LONGEST:
        return (("", text),)
    spans: list[Span] = []
    at = 0
    for found in _JSON.finditer(text):
        _add(spans, "", text[at : found.start()])
        _add(spans, found.lastgroup or "", found[0])
        at = found.end()
    _add(spans, "", text[at:])
    return tuple(spans)


def _add(spans: list[Span], kind: str, piece: str) -> None:
    if not piece:
        return
    if spans and spans[-1][0] == kind:
        spans[-1] = (kind, spans[-1][1] + piece)
    else:
        spans.append((kind, piece))
