"""Edits JSON settings as text: what a person wrote (comments, order, spacing) stays as it is, byte for byte.

Comments and trailing commas are understood. `install` uses it on other programs' files; no I/O here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from checkrein.errors import ConfigError

DEEPEST = 200
LONGEST_INTEGER = 4000
MARK = "\ufeff"
Path = tuple[str | int, ...]

# A lone carriage return ends a comment for some readers and not for others, so such a file is refused.
COMMENT = re.compile(r"//[^\r\n]*+(?=\r?\n|\Z)|/\*(?s:.*?)\*/")
BLANK = re.compile(r"[ \t\r\n]*+")
STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
WORDS = {"true": True, "false": False, "null": None}


class Node(msgspec.Struct):
    """A value and where it stands in the text."""

    start: int
    end: int = 0
    value: Any = None
    items: list[Item] | None = None
    keyed: bool = False
    # Where a further item goes: after the last item, comma or comment of the container.
    tail: int = 0
    # Where its `//` comments end: whatever comes next needs a line of its own.
    hushed: set[int] = msgspec.field(default_factory=set)


class Item(msgspec.Struct):
    """One element of an array, or member of an object with its key."""

    start: int
    node: Node
    key: str | None = None
    key_end: int = 0
    comma: int = -1


class _Reader:
    """One pass over the text with a stack of its own, so depth is bounded and time is linear."""

    def __init__(self, text: str, source: str, comments: bool, commas: bool) -> None:
        self.text, self.source, self.comments, self.commas = text, source, comments, commas
        self.at = len(MARK) if text.startswith(MARK) else 0

    def document(self) -> Node:
        self.skip()
        root = self.value()
        stack = [root] if root.items is not None else []
        while stack:
            self.step(stack)
        self.skip()
        if self.at < len(self.text):
            raise self.fault("something follows the end of the document")
        return root

    def step(self, stack: list[Node]) -> None:
        """The next item of the innermost open container, or its end."""
        top = stack[-1]
        items = top.items = top.items or []
        last = items[-1] if items else None
        top.tail = last.node.end if last else self.at
        self.skip(top)
        if last and self.text.startswith(",", self.at):
            last.comma, self.at = self.at, self.at + 1
            top.tail = self.at
            self.skip(top)
        if self.text.startswith("}" if top.keyed else "]", self.at):
            self.close(stack.pop())
            return
        if last and last.comma < 0:
            raise self.fault('a "," or the closing bracket is missing')
        item = self.item(top.keyed)
        items.append(item)
        if item.node.items is not None:
            if len(stack) >= DEEPEST:
                raise self.fault(f"it is nested deeper than {DEEPEST} levels")
            stack.append(item.node)

    def close(self, node: Node) -> None:
        items = node.items or []
        if items and items[-1].comma >= 0 and not self.commas:
            raise self.fault("a comma stands before the closing bracket")
        self.at += 1
        node.end = self.at
        values = [item.node.value for item in items]
        # As every reader of these files does, the last of several equal keys counts.
        node.value = dict(zip((i.key for i in items), values, strict=True)) if node.keyed else values

    def item(self, keyed: bool) -> Item:
        start = self.at
        if not keyed:
            return Item(start, self.value())
        key, key_end = self.string(), self.at
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.fault('a ":" is missing after the name')
        self.at += 1
        self.skip()
        return Item(start, self.value(), key, key_end)

    def value(self) -> Node:
        start, mark = self.at, self.text[self.at : self.at + 1]
        if mark in ("{", "["):
            self.at += 1
            return Node(start, items=[], keyed=mark == "{", tail=self.at)
        value = self.string() if mark == '"' else self.plain()
        return Node(start, self.at, value)

    def string(self) -> str:
        found = STRING.match(self.text, self.at)
        if not found:
            raise self.fault("a text in double quotes is expected here")
        self.at = found.end()
        return str(json.loads(found.group()))

    def plain(self) -> Any:
        for word, value in WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        found = NUMBER.match(self.text, self.at)
        if not found:
            raise self.fault("a value is expected here")
        self.at = found.end()
        digits = found.group()
        return float(digits) if len(digits) > LONGEST_INTEGER else json.loads(digits)

    def skip(self, container: Node | None = None) -> None:
        """Over space and comments; a container remembers where its last comment ended."""
        while True:
            self.at = BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]  # matches nothing too
            if not self.text.startswith("/", self.at):
                return
            found = COMMENT.match(self.text, self.at)
            if not found or not self.comments:
                raise self.fault("a comment is not allowed here" if found else "a comment does not end")
            self.at = found.end()
            if container is not None:
                container.tail = self.at
                if found.group().startswith("//"):
                    container.hushed.add(self.at)

    def fault(self, what: str) -> ConfigError:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        return ConfigError(
            f"line {line}, column {column}",
            None,
            f"this is not valid JSON: {what}.",
            "Nothing was changed. Correct the file, then try again.",
            source=self.source,
        )


def read(text: str, *, source: str = "", comments: bool = True, commas: bool = True) -> Node:
    """The document's outermost value with the place of everything in it."""
    return _Reader(text, source, comments, commas).document()


def parse(text: str, *, source: str = "", comments: bool = True, commas: bool = True) -> Any:
    """What the text says; many programs take no `comments`, or no `commas` before a closing bracket."""
    return read(text, source=source, comments=comments, commas=commas).value


def insert_item(text: str, path: Path, value: Any, *, source: str = "") -> str:
    """`value` as the last element of the array at `path`; objects and the array are made where missing."""
    return _insert(text, path, value, [value], source)


def set_member(text: str, path: Path, value: Any, *, source: str = "") -> str:
    """`value` at `path`, in place of what is there or as the last member; objects are made where missing."""
    if not text.strip(MARK + " \t\r\n"):
        return _insert(text, path, value, value, source)
    root = read(text, source=source)
    found, rest = _walk(root, path, source)
    if rest:
        return _insert(text, path, value, value, source)
    return text[: found.start] + _Style(text, root).beside(found.start, value) + text[found.end :]


def remove_item(text: str, path: Path, *, source: str = "") -> str:
    """Without the element or member at `path`, its comma and the space it stood in."""
    container, rest = _walk(read(text, source=source), path[:-1], source)
    index = None if rest else _index(container, path[-1])
    if index is None:
        raise _misfit(path, "is not there", source)
    cuts = _cuts(text, container, index)
    return _without(text, _line_kept(text, cuts, container.hushed))


def _insert(text: str, path: Path, value: Any, fresh: Any, source: str) -> str:
    """`fresh` is the value where nothing is at the path yet; `value` is what an existing array gets."""
    if not text.strip(MARK + " \t\r\n"):
        return text + _pretty(_nested(path, fresh), "  ", "\n", "") + "\n"
    root = read(text, source=source)
    found, rest = _walk(root, path, source)
    style = _Style(text, root)
    if not rest:
        if found.items is None or found.keyed:
            raise _misfit(path, "is not a list", source)
        return style.append(found, None, value)
    if not found.keyed or not isinstance(rest[0], str):
        raise _misfit(path[: len(path) - len(rest)], "is not an object", source)
    return style.append(found, rest[0], _nested(rest[1:], fresh))


def _walk(root: Node, path: Path, source: str) -> tuple[Node, Path]:
    """As far along the path as the document goes, and the part of the path it does not have."""
    node = root
    for done, step in enumerate(path):
        if node.items is None:
            raise _misfit(path[:done], "is not an object or a list", source)
        index = _index(node, step)
        if index is None:
            return node, path[done:]
        node = node.items[index].node
    return node, ()


def _index(node: Node, step: str | int) -> int | None:
    items = node.items or []
    if node.keyed:
        return next((i for i in reversed(range(len(items))) if items[i].key == step), None)
    return step if isinstance(step, int) and 0 <= step < len(items) else None


def _misfit(path: Path, what: str, source: str) -> ConfigError:
    name = ".".join(map(str, path)) or "(whole file)"
    return ConfigError(
        name, None, f"{what}.", "Nothing was changed. Correct the file by hand.", source=source
    )


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


class _Style:
    """How this document is written: line ends, indentation, space after a colon."""

    def __init__(self, text: str, root: Node) -> None:
        self.text = text
        self.lines = "\n" in text[root.start : root.end] or not root.items
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.colon, self.step = self._colon(root), self._step(root)
        self.tight = not self.lines and self.colon == ":"

    def _colon(self, root: Node) -> str:
        item = root.items[0] if root.keyed and root.items else None
        between = self.text[item.key_end : item.node.start] if item else ": "
        return between if re.fullmatch(r"[ \t]*:[ \t]*", between) else ": "

    def _step(self, root: Node) -> str:
        """The first indentation that is deeper than that of the line it belongs to."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            inner, outer = self.lead(node), self.indent(node.start)
            if inner and len(inner) > len(outer) and inner.startswith(outer):
                return inner[len(outer) :]
            waiting.extend(item.node for item in reversed(node.items or []) if item.node.items)
        return "  "

    def lead(self, node: Node) -> str | None:
        """The indentation of the container's last item, None when it does not start a line."""
        if not node.items:
            return None
        space = _space_before(self.text, node.items[-1].start)
        return space.rpartition("\n")[2] if "\n" in space else None

    def indent(self, at: int) -> str:
        start = self.text.rfind("\n", 0, at) + 1
        return re.match(r"[ \t]*", self.text[start:at].lstrip(MARK)).group()  # type: ignore[union-attr]

    def beside(self, at: int, value: Any) -> str:
        return self.shown(value, self.indent(at)) if self.lines else self.shown(value, None)

    def shown(self, value: Any, indent: str | None) -> str:
        """Over several lines from `indent` on, or on one line when it is None."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False, separators=("," if self.tight else ", ", self.colon))
        return _pretty(value, self.step, self.newline, indent, self.colon)

    def append(self, node: Node, key: str | None, value: Any) -> str:
        """The text with one more item in the container; nothing else changes."""
        items = node.items or []
        last = items[-1] if items else None
        indent = self.lead(node) if last else self._first_indent(node)
        if indent is None and node.tail in node.hushed:
            indent = self.indent(node.tail)
        name = "" if key is None else json.dumps(key, ensure_ascii=False) + self.colon
        item = name + self.shown(value, indent)
        if indent is not None:
            item = self.newline + indent + item
        elif last:
            item = self._gap(items) + item
        if last and last.comma >= 0:
            return _with(self.text, [(node.tail, item + ",")])
        if last:
            return _with(self.text, [(last.node.end, ","), (node.tail, item)])
        closing = "" if indent is None else self.newline + self.indent(node.start)
        return _with(self.text, [(node.tail, item + closing)])

    def _first_indent(self, node: Node) -> str | None:
        return self.indent(node.start) + self.step if self.lines else None

    def _gap(self, items: list[Item]) -> str:
        return _space_before(self.text, items[-1].start) if len(items) > 1 else ("" if self.tight else " ")


def _pretty(value: Any, step: str, newline: str, indent: str, colon: str = ": ") -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=step, separators=(",", colon))
    # Line ends inside a text are escaped, so every one here is between values.
    return shown.replace("\n", newline + indent)


def _space_before(text: str, at: int) -> str:
    start = at
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start:at]


def _cuts(text: str, container: Node, index: int) -> list[tuple[int, int]]:
    """What goes with the item: exactly what `append` would have added for it."""
    items = container.items or []
    item = items[index]
    before = _space_before(text, item.start)
    start, end = item.start - len(before), item.node.end
    if len(items) == 1:
        after = max(end, item.comma + 1)
        return _cut_pair(start, end, item.comma, _closing(text, after, container, before))
    if item.comma < 0:
        previous = items[index - 1].comma
        return [(previous, previous + 1), (start, end)]
    if index == 0 and not before:
        # The first of several on one line: its space is the one behind it.
        return _cut_pair(start, end, item.comma, len(BLANK.match(text, item.comma + 1).group()))  # type: ignore[union-attr]
    return _cut_pair(start, end, item.comma, 0)


def _line_kept(text: str, cuts: list[tuple[int, int]], hushed: set[int]) -> list[tuple[int, int]]:
    """The cuts, but a `//` comment keeps its line end where nothing else would end it."""
    start, end = cuts[-1] if cuts[-1][0] in hushed else cuts[0]
    if start not in hushed or re.match(
        r"\r?\n", _without(text, cuts)[start - _cut_before(cuts, start) :][:2]
    ):
        return cuts
    return [(text.index("\n", start) + 1, end) if cut == (start, end) else cut for cut in cuts]


def _cut_before(cuts: list[tuple[int, int]], at: int) -> int:
    return sum(end - start for start, end in cuts if start < at)


def _cut_pair(start: int, end: int, comma: int, more: int) -> list[tuple[int, int]]:
    if comma < 0:
        return [(start, end + more)]
    return [(start, end), (comma, comma + 1 + more)]


def _closing(text: str, at: int, container: Node, before: str) -> int:
    """How much of the line end before the closing bracket came with the only item."""
    if "\n" not in before:
        return 0
    line = text.rfind("\n", 0, container.start) + 1
    indent = re.match(r"[ \t]*", text[line : container.start].lstrip(MARK)).group()  # type: ignore[union-attr]
    found = re.compile(r"\r?\n" + re.escape(indent)).match(text, at)
    return len(found.group()) if found else 0


def _with(text: str, pieces: Iterable[tuple[int, str]]) -> str:
    parts, at = [], 0
    for place, piece in pieces:
        parts += [text[at:place], piece]
        at = place
    return "".join([*parts, text[at:]])


def _without(text: str, cuts: Iterable[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in cuts:
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])
