"""Where in a Python script something is, and which of its calls want their value at once.

Called by the Python engine, which learns places as byte offsets. Parses, never runs; a script it cannot
read has no plain calls.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator

# In a longer script every call needs its `await`.
LONGEST_READ = 16 << 10
_LINE_END = re.compile(rb"\r\n|\r|\n")
# Functions nobody hands an unfinished call to.
_READERS = frozenset(
    "print len str repr int float bool sorted sum min max any all dict set enumerate isinstance type dumps"
    " loads zip map filter reversed join".split()
)
_CONSUMERS = (
    *(ast.Expr, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue),
    *(ast.If, ast.While, ast.For, ast.comprehension, ast.Assert, ast.AugAssign, ast.BoolOp),
)


class Script:
    """A script's text with its lines."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._bytes = source.encode()
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(self._bytes))]
        self._plain: frozenset[tuple[int, int]] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line from 1 and column from 0, in characters, of a byte offset."""
        line = bisect.bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        return line, len(self._bytes[start:offset].decode(errors="replace"))

    def is_plain(self, start: int, end: int) -> bool:
        """Whether the call there uses its value at once, without `await`."""
        return (start, end) in self.read()

    @property
    def was_read(self) -> bool:
        return self._plain is not None

    def read(self) -> frozenset[tuple[int, int]]:
        """Look for plain calls, once. Takes a while for a long script: not for the event loop."""
        if self._plain is None:
            self._plain = frozenset(self._find() if len(self._bytes) <= LONGEST_READ else ())
        return self._plain

    def _find(self) -> Iterator[tuple[int, int]]:
        try:
            tree = ast.parse(self._source)
            nodes = list(ast.walk(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
        awaited = {
            name.id
            for node in nodes
            if isinstance(node, (ast.Await, ast.Call, ast.List, ast.Tuple, ast.Return))
            and not _is_result(node, parents)
            and not _is_read(node, parents)
            for name in _handed(node)
        }
        for node in nodes:
            if isinstance(node, ast.Call) and _wants_value(node, parents, awaited):
                yield self._span(node)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end_column


def _handed(node: ast.AST) -> Iterator[ast.Name]:
    """Names whose values a node waits for, or hands on to someone who may."""
    if isinstance(node, ast.Await):
        candidates = [node.value]
    elif isinstance(node, ast.Call):
        candidates = [] if _reads(node) else [*node.args, *(word.value for word in node.keywords)]
    elif isinstance(node, ast.Return):
        candidates = [node.value] if node.value else []
    else:
        candidates = [*node.elts] if isinstance(node, (ast.List, ast.Tuple)) else []
    for candidate in candidates:
        bare = candidate.value if isinstance(candidate, ast.Starred) else candidate
        if isinstance(bare, ast.Name):
            yield bare


def _is_result(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether it is what the whole script comes to: nobody waits for anything after that."""
    if isinstance(node, (ast.List, ast.Tuple)):
        node = parents.get(id(node), node)
    if isinstance(node, ast.Return):
        above: ast.AST | None = node
        while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            above = parents.get(id(above))
        return above is None
    return isinstance(node, ast.Expr)


def _is_read(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether it is, or is within, what is handed to somebody who wants values."""
    above = parents.get(id(node))
    while isinstance(above, (ast.keyword, ast.Dict, ast.List, ast.Tuple, ast.Starred)):
        above = parents.get(id(above))
    return isinstance(above, ast.Call) and above.func is not node and _reads(above)


def _reads(call: ast.Call) -> bool:
    """Whether nobody hands an unfinished call to this function: a tool takes JSON."""
    function = call.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _READERS or "__" in name or name == "call_tool"


def _wants_value(node: ast.Call, parents: dict[int, ast.AST], awaited: set[str]) -> bool:
    parent = parents.get(id(node))
    if _is_read(node, parents):
        return True
    if isinstance(parent, ast.Call):
        return parent.func is node
    if isinstance(parent, ast.Return):
        return _is_result(parent, parents)
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in targets):
            return True
        return all(isinstance(target, ast.Name) and target.id not in awaited for target in targets)
    return isinstance(parent, _CONSUMERS)
