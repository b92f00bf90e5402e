"""A JavaScript or TypeScript script as a tree of small nodes, without comments and types, in bounded time.

The script's preview calls it; tree-sitter is loaded on first use.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from checkrein.execute.preview_scopes import Overrun, Region, Scope, Unreadable, Values, Work

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

ACCESS = frozenset({"member_expression", "subscript_expression"})
PARSE_SECONDS = 0.5
_CHUNK = 256
# Never evaluated: what these hold only looks like code.
_TYPES = frozenset(
    "comment html_comment type_annotation type_arguments type_parameters type_query interface_declaration"
    " type_alias_declaration ambient_declaration implements_clause method_signature function_signature"
    " abstract_method_signature index_signature property_signature object_type hash_bang_line".split()
)
_KEPT = frozenset({"operator", "kind"})
_LISTS = frozenset({"array", "array_pattern"})
_CASTS = frozenset({"as_expression", "satisfies_expression"})
_INSIDE = frozenset(
    "parenthesized_expression non_null_expression type_assertion instantiation_expression".split()
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{1,3})|([\s\S]))")
_SHORT = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\n": "",
    "\u2028": "",
    "\u2029": "",
}


class Node:
    """One piece of the script and what was learned about it."""

    __slots__ = (
        "bound", "children", "end", "field", "generic", "inner", "region", "scope", "seen", "start", "type",
        "up", "values", "within",
    )  # fmt: skip

    scope: Scope  # where it stands
    region: Region
    inner: Scope  # where its children stand
    within: Region

    def __init__(self, kind: str, field: str | None, start: int, end: int, up: Node | None) -> None:
        self.type = kind
        self.field = field
        self.start = start
        self.end = end
        self.up = up
        self.children: list[Node] = []
        self.generic = False  # it had type arguments
        self.seen = False  # nothing is left to report about it
        self.bound = ""  # its value goes into a name ("name") or is taken apart into names ("parts")
        self.values: Values | None = None

    def get(self, field: str) -> Node | None:
        return next((child for child in self.children if child.field == field), None)

    @property
    def listed(self) -> list[Node]:
        """The children, without what only stands between them."""
        return [child for child in self.children if child.type != ","]


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_typescript

    return tree_sitter.Language(tree_sitter_typescript.language_typescript())


def _parsed(text: bytes) -> Tree:
    """The syntax tree.

    INVARIANT: parsing is bounded. Recovery from errors is quadratic (64 KB of quotes take half a minute), and
    the parser asks for its text in pieces: when the time is over, the text simply ends.
    """
    import tree_sitter

    until = time.thread_time() + PARSE_SECONDS
    late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal late
        late = late or time.thread_time() > until
        return b"" if late else text[offset : offset + _CHUNK]

    tree = tree_sitter.Parser(_language()).parse(read)
    if late:
        raise Overrun
    return tree


def nodes_of(text: bytes, work: Work) -> list[Node]:
    """Every node, each before what is in it; raises Unreadable when the text is no script."""
    tree = _parsed(text)
    if tree.root_node.has_error:
        raise Unreadable
    cursor = tree.walk()
    nodes: list[Node] = []
    up: Node | None = None
    while True:
        work.spend()
        found = cursor.node
        assert found is not None  # noqa: S101 - for the type checker: a cursor always stands on a node
        field = cursor.field_name
        if found.type in _TYPES and up is not None:
            up.generic = up.generic or found.type == "type_arguments"
        elif _kept(up, found.is_named, found.type, field):
            node = Node(found.type, field, found.start_byte, found.end_byte, up)
            nodes.append(node)
            if up is not None:
                up.children.append(node)
            if cursor.goto_first_child():
                up = node
                continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return nodes
            up = up and up.up


def _kept(up: Node | None, named: bool, kind: str, field: str | None) -> bool:
    if up is None:
        return True
    if up.type in _CASTS:
        return named and not up.children
    return named or field in _KEPT or (kind == "," and up.type in _LISTS)


def unwrapped(node: Node, work: Work) -> Node:
    """What is inside parentheses, casts, `await`, an assignment or the end of a sequence."""
    while True:
        work.spend()
        if (
            node.type in _INSIDE
            or node.type in _CASTS
            or node.type in ("await_expression", "sequence_expression")
        ):
            inner = node.children[-1] if node.children else None
        elif node.type == "assignment_expression":
            inner = node.get("right")
        else:
            return node
        if inner is None:
            return node
        node = inner


def around(node: Node, work: Work) -> Iterator[Node]:
    """The node, then what only wraps it, outwards; ends with the first that does something."""
    yield node
    while node.up is not None and (node.up.type in _INSIDE or node.up.type in _CASTS):
        work.spend()
        node = node.up
        yield node


def decoded(text: str) -> str:
    """Text with its escapes resolved."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    braced, four, two, octal, single = found.groups()
    digits = braced or four or two
    if digits:
        number = int(digits[-9:], 16)
        return chr(number) if number < 0x110000 else "\ufffd"
    if octal:
        return chr(int(octal, 8))
    return _SHORT.get(single, single)
