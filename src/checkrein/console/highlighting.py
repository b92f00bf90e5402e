"""Code of a named language cut into spans, each with the kind of thing it is. Pure; for the eye only."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import thread_time
from typing import Any

from checkrein.console.spans import LONGEST, Span

# What a model writes in answers; any other language is shown plain. Names are what stands after the fence.
_LANGUAGES = frozenset(
    (
        "bash sh shell zsh console powershell python py python3 javascript js jsx typescript ts tsx json"
        " jsonc yaml yml toml ini html xml css scss sql c cpp c++ csharp cs java kotlin swift go rust rs ruby"
        " rb php perl lua r scala haskell elixir erlang clojure diff patch docker dockerfile make makefile"
        " cmake nginx graphql protobuf terraform hcl"
    ).split()
)
_OTHER_NAMES = {
    "jsonc": "json",
    "patch": "diff",
    "c++": "cpp",
    "zsh": "bash",
    "shell": "bash",
    "hcl": "terraform",
}
# How long one piece of code is worked on: a model can write what keeps a lexer busy for seconds.
SECONDS = 0.2
# The first that fits: pygments' names of kinds, and ours.
_KINDS = (
    ("Token.Comment", "comment"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Name.Tag", "key"),
    ("Token.Name.Function", "key"),
    ("Token.Name.Class", "key"),
    ("Token.Name.Attribute", "flag"),
    ("Token.Name.Builtin", "flag"),
    ("Token.Name.Decorator", "variable"),
    ("Token.Name.Variable", "variable"),
    ("Token.Generic.Deleted", "operator"),
    ("Token.Generic.Inserted", "string"),
    ("Token.Generic.Heading", "comment"),
    ("Token.Generic.Subheading", "comment"),
)


def code_spans(
    text: str, language: str, seconds: float = SECONDS, clock: Callable[[], float] = thread_time
) -> tuple[Span, ...]:
    """The text in spans; one plain span where the language is not known or colouring would take too long.

    `clock` measures the processor time of this thread.
    """
    lexer = _lexer(language.lower()) if text and len(text) <= LONGEST and seconds > 0 else None
    if lexer is None:
        return (("", text),)
    spans: list[Span] = []
    ends = clock() + min(seconds, SECONDS)
    for token, piece in lexer.get_tokens(text):
        if clock() > ends:
            return (("", text),)
        kind = _kind(str(token))
        if spans and spans[-1][0] == kind:
            spans[-1] = (kind, spans[-1][1] + piece)
        else:
            spans.append((kind, piece))
    # INVARIANT: colours change nothing of what is read.
    return tuple(spans) if "".join(piece for _, piece in spans) == text else (("", text),)


@cache
def _kind(token: str) -> str:
    return next((kind for name, kind in _KINDS if token == name or token.startswith(f"{name}.")), "")


@cache
def _lexer(language: str) -> Any:
    if language not in _LANGUAGES:
        return None
    try:
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
        from pygments.util import ClassNotFound  # type: ignore[import-untyped]
    except ImportError:
        return None
    try:
        return get_lexer_by_name(_OTHER_NAMES.get(language, language), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
