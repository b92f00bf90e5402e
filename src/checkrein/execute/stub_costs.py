"""What it costs, in tokens, to tell a model about its tools: as definitions, stubs, names, or by searching.

Called by the benchmark and by people who choose. Counts nothing that a script or a call does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from checkrein.call import canonical
from checkrein.execute import stub_python, stub_typescript
from checkrein.execute.stubs import (
    Described,
    Language,
    estimated_tokens,
    names,
    python_with,
    search_only,
    typescript_with,
)

Counter = Callable[[str], int]


class Costs(msgspec.Struct, frozen=True):
    """Tokens of each way to tell; `exact` says whether they were counted or estimated (UTF-8 bytes / 4)."""

    definitions: int
    whole: int
    sentence: int
    signatures: int
    names: int
    search: int
    exact: bool


def costs(
    tools: Sequence[Described], language: Language, *, own: str = "", counter: Counter | None = None
) -> Costs:
    """Every way to tell the same tools. `own` is what scripts and searching need besides: their own tools."""
    measure = counter or exact_counter() or estimated_tokens
    write = python_with if language == "python" else typescript_with
    comment = stub_python.COMMENT if language == "python" else stub_typescript.COMMENT
    besides = measure(own) if own else 0
    return Costs(
        definitions=measure(definitions(tools)),
        whole=besides + measure(write(tools, "whole")),
        sentence=besides + measure(write(tools, "sentence")),
        signatures=besides + measure(write(tools, "none")),
        names=besides + measure(names(tools, comment)),
        search=besides + measure(search_only(tools, comment)),
        exact=measure is not estimated_tokens,
    )


def definitions(tools: Sequence[Described]) -> str:
    """The tools as a model gets them without scripts: name, description, input schema."""
    return canonical(
        [{"name": tool.name, "description": tool.description, "input_schema": tool.takes} for tool in tools]
    ).decode()


def exact_counter() -> Counter | None:
    """Counts tokens of o200k; None where its package is not installed."""
    try:
        from splintr import Tokenizer  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    # Not `encode`: it takes `<|...|>` in a description for a control token.
    return lambda text: len(tokenizer.encode_ordinary(text))
