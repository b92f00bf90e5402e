"""The tool calls a reader sees in a Python script: `codemode.NAME(...)`, `server__tool(...)`, `call_tool`.

Called by the preview, which shows them to a person; never used for enforcement.
"""

from __future__ import annotations

import ast
import re
import warnings

from checkrein.execute.preview_python_names import Names, walked
from checkrein.execute.preview_scopes import (
    DYNAMIC,
    MOST_DEPTH,
    OPAQUE,
    Kind,
    Places,
    Unreadable,
    Value,
    Values,
    Work,
    joined,
    member,
    the_text,
)

_LINE_ENDS = re.compile(rb"\r\n|\r|\n")
_TOOL_LIKE = re.compile(r"[^\W_]\w*__\w+")
_HOST = {
    "codemode": Value("namespace"),
    "call_tool": Value("caller"),
    "eval": Value("eval"),
    "exec": Value("eval"),
    **{
        name: Value("builtin", name)
        for name in ("getattr", "globals", "locals", "vars", "builtins", "__builtins__")
    },
}
_ACCESS = (ast.Attribute, ast.Subscript)
_OFFERED = frozenset({"tool", "dynamic", "eval"})
_GIVEN_ON = frozenset({"tool", "dynamic", "eval", "namespace", "caller"})
# Look at the tools' names only.
_HARMLESS = frozenset(
    "print dir hasattr repr str type isinstance callable bool id len help sorted list".split()
)


def uses_in_python(
    text: bytes, tools: frozenset[str] | None, work: Work
) -> list[tuple[str | None, int, int, Kind]]:
    return Script(text, tools, work).uses()


def _tree(text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.decode())
    except (SyntaxError, ValueError):
        raise Unreadable from None


class Script:
    """One script while it is looked through."""

    def __init__(self, text: bytes, tools: frozenset[str] | None, work: Work) -> None:
        self.work = work
        self.tools = tools
        self.places = Places(text, _LINE_ENDS)
        self.found: dict[tuple[int, str | None, Kind], None] = {}
        self.seen: set[ast.AST] = set()
        self.known: dict[ast.AST, Values] = {}
        self.places_of = walked(_tree(text), work)
        self.names = Names(self.places_of, self.value, self.host, self.part, work)
        self.seen |= self.names.annotations

    def uses(self) -> list[tuple[str | None, int, int, Kind]]:
        for node in self.places_of:
            self.work.spend()
            if node in self.seen:
                continue
            if isinstance(node, ast.Call):
                self.look_at_call(node)
            elif isinstance(node, (*_ACCESS, ast.Name)) and isinstance(node.ctx, ast.Load):
                self.look_at_value(node)
        ordered = sorted(self.found, key=lambda use: use[0])
        return [(tool, *self.places.at(offset), kind) for offset, tool, kind in ordered]

    def report(self, node: ast.expr, value: Value, kind: Kind) -> None:
        lines = self.places.starts
        at = lines[min(node.lineno, len(lines)) - 1] + node.col_offset
        if value.what in ("dynamic", "eval"):
            self.found[at, None, "dynamic" if value.what == "dynamic" else "eval"] = None
        else:
            self.found[at, value.name, kind] = None

    def host(self, name: str) -> Value:
        """What a name is that the script does not define."""
        if name in _HOST:
            return _HOST[name]
        known = _TOOL_LIKE.fullmatch(name) is not None if self.tools is None else name in self.tools
        return Value("tool", name) if known else OPAQUE

    # Calls

    def look_at_call(self, node: ast.Call) -> None:
        values = [value for value in self.value(node.func) if value.what in (*_OFFERED, "caller")]
        for value in values:
            if value.what == "caller":
                self.report(node, self.asked_for(node), "literal")
            else:
                self.report(node, value, value.how)
        if values:
            self.settle(node.func)
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__call__":
            self.spelled_out(node, node.func)
        if isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
            for given in node.args:
                if any(value.what in ("namespace", "table") for value in self.value(given)):
                    self.settle(given)
        # Calls that only name a tool, as `getattr(codemode, "x")`, are looked at as the value they are.
        self.look_at_value(node)

    def asked_for(self, node: ast.Call) -> Value:
        """The tool that `call_tool(NAME, ...)` calls."""
        named = [given.value for given in node.keywords if given.arg in ("name", "tool", "tool_name")]
        first = next(iter([*node.args[:1], *named]), None)
        name = None if first is None else the_text(self.value(first))
        return DYNAMIC if name is None else Value("tool", name)

    def spelled_out(self, node: ast.Call, func: ast.Attribute) -> None:
        """`tool.__call__(...)`."""
        values = [value for value in self.value(func.value) if value.what in _OFFERED]
        for value in values:
            self.report(node, value, "indirect")
        if values:
            self.settle(func.value)

    # Tools that are named without being called

    def look_at_value(self, node: ast.expr) -> None:
        values = [value for value in self.value(node) if value.what in _GIVEN_ON]
        if not values:
            return
        spaces = all(value.what == "namespace" for value in values)
        dynamic = any(value.what == "dynamic" for value in values)
        if dynamic or not (node in self.names.bound or self.idle(node, spaces)):
            for value in values:
                # The tools themselves are handed on: which of them is called then, the text does not say.
                whole = value.what in ("namespace", "caller")
                self.report(node, DYNAMIC if whole else value, "reference")
        self.settle(node)

    def idle(self, node: ast.expr, spaces: bool) -> bool:
        """Whether the value is only looked at: tested, compared, or the start of a longer path."""
        up = self.places_of[node].up
        while isinstance(up, ast.BoolOp):
            self.work.spend()
            if isinstance(up.op, ast.And) and up.values[-1] is not node:
                return True
            node, up = up, self.places_of[up].up
        if isinstance(up, _ACCESS):
            return spaces and up.value is node
        if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return up.test is node
        if isinstance(up, ast.UnaryOp):
            return isinstance(up.op, ast.Not)
        return isinstance(up, ast.Compare) or (
            spaces and isinstance(up, (ast.Expr, ast.For, ast.comprehension))
        )

    def settle(self, node: ast.expr) -> None:
        """Nothing more is to be said of this path to a tool; what is computed inside it is looked at."""
        at: ast.expr | None = node
        while at is not None:
            self.work.spend()
            self.seen.add(at)
            if isinstance(at, (*_ACCESS, ast.NamedExpr, ast.Await)):
                at = at.value
            elif isinstance(at, ast.Call):
                self.seen.add(at.func)
                inner = at.func.value if isinstance(at.func, ast.Attribute) else None
                at = at.args[0] if inner is None and at.args else inner
            else:
                return

    # Values

    def value(self, node: ast.expr) -> Values:
        """What the expression may stand for."""
        found = self.known.get(node)
        if found is not None:
            return found
        if self.work.depth >= MOST_DEPTH:
            return (OPAQUE,)
        self.work.spend()
        self.work.depth += 1
        try:
            found = self.known[node] = self.worked_out(node)
        finally:
            self.work.depth -= 1
        return found

    def worked_out(self, node: ast.expr) -> Values:
        if isinstance(node, ast.Name):
            return self.names.read(node)
        if isinstance(node, ast.Attribute):
            return tuple(self.attribute(value, node.attr) for value in self.value(node.value))
        if isinstance(node, ast.Subscript):
            name = the_text(self.value(node.slice))
            return tuple(self.item(value, name) for value in self.value(node.value))
        if isinstance(node, ast.Call):
            return self.answered(node)
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.value(node.value)
        if isinstance(node, ast.Constant):
            return joined([node.value]) if isinstance(node.value, str) else (OPAQUE,)
        if isinstance(node, ast.JoinedStr):
            return joined([self.part_of_fstring(part) for part in node.values[:64]])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.added(node)
        return (OPAQUE,)

    def attribute(self, value: Value, name: str) -> Value:
        if value.what == "namespace":
            if name == "__dict__":
                return Value("table", "codemode", value.how)
            if name in ("__getattr__", "__getattribute__", "__getitem__"):
                return Value("getter", "codemode", value.how)
            return OPAQUE if name.startswith("__") else member(value, name, literal=False)
        if value.what == "table":
            if name in ("get", "__getitem__", "pop"):
                return Value("getter", value.name, value.how)
            return DYNAMIC if name in ("values", "items", "popitem", "copy") else OPAQUE
        if value.what == "builtin" and value.name in ("builtins", "__builtins__"):
            return _HOST.get(name, OPAQUE)
        return OPAQUE

    def item(self, value: Value, name: str | None) -> Value:
        """`value[name]`."""
        if value.what == "namespace" or (value.what == "table" and value.name == "codemode"):
            return member(value, name, literal=True)
        if value.what == "table":
            return DYNAMIC if name is None else self.looked_up(name)
        if value.what == "builtin" and value.name == "__builtins__":
            return DYNAMIC if name is None else _HOST.get(name, OPAQUE)
        return OPAQUE

    def part(self, value: Value, name: str) -> Value:
        """What `from value import name` gives."""
        return self.attribute(value, name)

    def looked_up(self, name: str) -> Value:
        """`globals()[name]`."""
        if self.names.defines(name):
            return OPAQUE
        found = self.host(name)
        return Value("tool", name, "literal") if found.what == "tool" else found

    def answered(self, node: ast.Call) -> Values:
        """Calls whose result the text tells: `getattr(codemode, NAME)`, `globals()`, `"_".join([...])`."""
        found: list[Value] = []
        for value in self.value(node.func):
            if value.what == "getter":
                name = the_text(self.value(node.args[0])) if node.args else None
                space = Value("namespace" if value.name == "codemode" else "table", value.name, value.how)
                found.append(self.item(space, name))
            elif value.what == "builtin" and value.name == "getattr" and len(node.args) > 1:
                found += self.fetched(node.args[0], node.args[1])
            elif value.what == "builtin" and value.name in ("globals", "locals", "vars"):
                found += self.tables(node)
        if found:
            return tuple(dict.fromkeys(found))
        return self.join(node)

    def fetched(self, owner: ast.expr, key: ast.expr) -> Values:
        name = the_text(self.value(key))
        found: list[Value] = []
        for value in self.value(owner):
            if value.what == "namespace" and (name is None or not name.startswith("__")):
                found.append(member(value, name, literal=True))
            elif value.what in ("namespace", "builtin"):
                found.append(DYNAMIC if name is None else self.attribute(value, name))
        return tuple(found) or (OPAQUE,)

    def tables(self, node: ast.Call) -> Values:
        if not node.args:
            return (Value("table", "globals"),)
        return tuple(
            Value("table", "codemode", value.how) if value.what == "namespace" else OPAQUE
            for value in self.value(node.args[0])
        )

    def join(self, node: ast.Call) -> Values:
        func = node.func
        if not (isinstance(func, ast.Attribute) and func.attr == "join" and len(node.args) == 1):
            return (OPAQUE,)
        separator, listing = the_text(self.value(func.value)), node.args[0]
        if separator is None or not isinstance(listing, (ast.List, ast.Tuple)) or len(listing.elts) > 64:
            return (OPAQUE,)
        return joined([the_text(self.value(each)) for each in listing.elts], separator)

    def added(self, node: ast.BinOp) -> Values:
        """`a + b + c`, from the right so that long sums need no depth."""
        parts: list[str | None] = []
        at: ast.expr = node
        while isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add) and len(parts) < 64:
            self.work.spend()
            parts.append(the_text(self.value(at.right)))
            at = at.left
        parts.append(the_text(self.value(at)))
        return joined(parts[::-1])

    def part_of_fstring(self, part: ast.expr) -> str | None:
        if isinstance(part, ast.FormattedValue):
            plain = part.format_spec is None and part.conversion in (-1, ord("s"))
            return the_text(self.value(part.value)) if plain else None
        return the_text(self.value(part))
