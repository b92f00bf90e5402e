"""What tools are called in scripts: `server__tool`, spelled so that JavaScript and Python can say it.

Called by the eval door. Rules never see these names: they match the server's and the tool's own, and what a
profile allows does too; what it refuses or asks about may be spelled like this.
"""

from __future__ import annotations

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable

from checkrein.call import digest, spelled

Pair = tuple[str, str]

_JAVASCRIPT = (
    "arguments async await break case catch class const continue debugger default delete do else enum "
    "eval export extends false finally for function if implements import in instanceof interface let new "
    "null package private protected public return static super switch this throw true try typeof "
    "undefined var void while with yield"
)
# Functions of our own that a script finds under these names.
_OURS = "utils__yaml__parse utils__yaml__stringify"
_TAKEN = frozenset([*_JAVASCRIPT.split(), *keyword.kwlist, *_OURS.split()])
_SHORT_MARK, _LONG_MARK = 8, 64
_MARKED = re.compile(rf"_x[0-9a-f]{{{_SHORT_MARK}}}(?:[0-9a-f]{{{_LONG_MARK - _SHORT_MARK}}})?\Z")
_LONGEST = 120


def script_names(tools: Iterable[Pair]) -> dict[Pair, str]:
    """A name for every tool; no two share one."""
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in dict.fromkeys(tools):
        groups[plain_name(*pair)].append(pair)
    named: dict[Pair, str] = {}
    for name, pairs in groups.items():
        named.update(_told_apart(name, pairs))
    return named


def plain_name(server: str, tool: str) -> str:
    """The name a tool would have if it were alone."""
    name = spelled(f"{server}__{tool}")
    # `__proto__`, `__debug__` and their like mean something of their own to the languages.
    if name in _TAKEN or (name.startswith("__") and name.endswith("__")):
        name += "_"
    return name


def _told_apart(name: str, pairs: list[Pair]) -> dict[Pair, str]:
    # INVARIANT: all that share a spelling are marked, even the one that was first or is spelled exactly
    # so: a tool that arrives never takes over a name scripts already use for another.
    # INVARIANT: a name that looks marked is marked too, so a mark cannot be forged.
    if len(pairs) == 1 and len(name) <= _LONGEST and not _MARKED.search(name):
        return {pairs[0]: name}
    stem = name[:_LONGEST]
    marks = {pair: digest(list(pair)) for pair in pairs}
    length = _SHORT_MARK if len({mark[:_SHORT_MARK] for mark in marks.values()}) == len(pairs) else _LONG_MARK
    return {pair: f"{stem}_x{mark[:length]}" for pair, mark in marks.items()}
