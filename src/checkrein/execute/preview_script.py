"""The tool calls a reader sees in a JavaScript or TypeScript script: `codemode.NAME(...)` and its disguises.

Called by the preview, which shows them to a person; never used for enforcement.
"""

from __future__ import annotations

import re

from checkrein.execute.preview_scopes import (
    DYNAMIC,
    MOST_DEPTH,
    OPAQUE,
    Kind,
    Places,
    Region,
    Scope,
    Value,
    Values,
    Work,
    as_alias,
    joined,
    member,
    the_text,
)
from checkrein.execute.preview_script_names import FUNCTIONS, Names
from checkrein.execute.preview_script_tree import ACCESS, Node, around, decoded, nodes_of, unwrapped

_LINE_ENDS = re.compile("\r\n|\r|\n|\u2028|\u2029".encode())
HOST = {
    "codemode": Value("namespace"),
    "eval": Value("eval"),
    "Function": Value("eval"),
    **{name: Value("table", "globals") for name in ("globalThis", "window", "self", "global")},
}
_NAMES = frozenset({"identifier", "shorthand_property_identifier"})
_CALLS = frozenset({"call_expression", "new_expression"})
_BORROWED = frozenset({"bind", "call", "apply"})
# Of every object, so not tools.
_INHERITED = frozenset(
    "hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf __proto__".split()
)
# Look at the tools' names only.
_HARMLESS = re.compile(
    r"console\.\w+|Object\.(keys|getOwnPropertyNames|hasOwn|is|isFrozen)|Reflect\.(apply|has|ownKeys)"
    r"|JSON\.stringify|String|Boolean"
)
_TIMERS = frozenset({"setTimeout", "setInterval", "setImmediate"})
_TESTS = frozenset({"===", "!==", "==", "!=", "in", "instanceof"})
_CHOICES = frozenset({"&&", "||", "??"})
_OFFERED = frozenset({"tool", "dynamic", "eval"})


def uses_in_script(text: bytes, work: Work) -> list[tuple[str | None, int, int, Kind]]:
    return Script(text, work).uses()


class Script:
    """One script while it is looked through."""

    def __init__(self, text: bytes, work: Work) -> None:
        self.text = text
        self.work = work
        self.nodes = nodes_of(text, work)
        self.found: dict[tuple[int, str | None, Kind], None] = {}
        self.names = Names(self, HOST)

    def uses(self) -> list[tuple[str | None, int, int, Kind]]:
        for node in self.nodes:
            self.work.spend()
            if node.seen:
                continue
            if node.type in _CALLS:
                self.look_at_call(node)
            elif node.type in ACCESS or node.type in _NAMES:
                self.look_at_value(node)
        places = Places(self.text, _LINE_ENDS)
        ordered = sorted(self.found, key=lambda use: use[0])
        return [(tool, *places.at(offset), kind) for offset, tool, kind in ordered]

    def report(self, at: int, value: Value, kind: Kind) -> None:
        if value.what in ("dynamic", "eval"):
            self.found[at, None, "dynamic" if value.what == "dynamic" else "eval"] = None
        else:
            self.found[at, value.name, kind] = None

    def name_of(self, node: Node) -> str:
        return decoded(self.text[node.start : node.end].decode(errors="replace"))

    # Calls

    def look_at_call(self, node: Node) -> None:
        callee = node.get("function") or node.get("constructor")
        if callee is None:
            return
        if callee.type == "await_expression" and callee.children:
            # `await f<T>(x)` arrives as a call of `await f`.
            callee = callee.children[-1]
        at = node.start if node.type == "new_expression" else callee.start
        borrowed = not self.called(at, callee, node) and self.borrowed(at, callee)
        words = self.text[callee.start : callee.end].decode(errors="replace")
        given = self.given(node)
        if words in _TIMERS and given and the_text(self.value(given[0])) is not None:
            self.report(at, Value("eval"), "eval")
        # As the `this` of a borrowed tool the tools stay where they are.
        if borrowed or _HARMLESS.fullmatch(words):
            for each in given:
                if any(value.what == "namespace" for value in self.value(each)):
                    self.settle(each)

    def called(self, at: int, callee: Node, node: Node) -> bool:
        """Whether what is called is a tool, or code made from text."""
        inner = unwrapped(callee, self.work)
        values = [value for value in self.value(callee) if value.what in _OFFERED]
        if not values and node.type == "call_expression" and self.property_of(inner) == "constructor":
            values = [Value("eval")]
        for value in values:
            self.report(at, value, value.how)
        if values:
            self.settle(callee)
        return bool(values)

    def borrowed(self, at: int, callee: Node) -> bool:
        """`tool.call(...)`, `tool.apply(...)`, `tool.bind(...)`."""
        inner = unwrapped(callee, self.work)
        owner = inner.get("object")
        if owner is None or self.property_of(inner) not in _BORROWED:
            return False
        values = [value for value in self.value(owner) if value.what in _OFFERED]
        for value in values:
            self.report(at, value, "indirect")
        if values:
            inner.seen = True
            self.settle(owner)
        return bool(values)

    def given(self, call: Node) -> list[Node]:
        arguments = call.get("arguments")
        return [] if arguments is None or arguments.type != "arguments" else arguments.children

    # Tools that are named without being called

    def look_at_value(self, node: Node) -> None:
        values = [value for value in self.value(node) if value.what in (*_OFFERED, "namespace")]
        if not values:
            return
        spaces = all(value.what == "namespace" for value in values)
        kept = node.bound == "name" or (node.bound == "parts" and spaces)
        dynamic = any(value.what == "dynamic" for value in values)
        if dynamic or not (kept or self.idle(node, spaces)):
            for value in values:
                # The tools themselves are handed on: which of them is called then, the text does not say.
                self.report(node.start, DYNAMIC if value.what == "namespace" else value, "reference")
        self.settle(node)

    def idle(self, node: Node, spaces: bool) -> bool:
        """Whether the value is only looked at: tested, compared, written over, or part of a longer path."""
        *_, outer = around(node, self.work)
        while (up := outer.up) is not None and up.type == "binary_expression":
            operator = up.get("operator")
            word = "" if operator is None else self.name_of(operator)
            if word in _TESTS or (word == "&&" and outer.field == "left"):
                return True
            if word not in _CHOICES:
                return False
            *_, outer = around(up, self.work)
        if up is None:
            return True
        if up.type in ACCESS:
            # `codemode.NAME` is looked at as a whole; a tool's own properties hand the tool on.
            return spaces and outer.field == "object"
        if up.type == "unary_expression" or outer.field in ("condition", "left"):
            return True
        return spaces and (up.type == "expression_statement" or up.type.startswith("for_in"))

    def settle(self, node: Node) -> None:
        """Nothing more is to be said of this path to a tool; what is computed inside it is looked at."""
        at: Node | None = node
        while at is not None:
            at = unwrapped(at, self.work)
            at.seen = True
            if at.type in ACCESS:
                at = at.get("object")
            elif at.type in _CALLS and self.is_get(at):
                given = self.given(at)
                at = given[0] if given else None
            else:
                return

    # Values

    def value(self, node: Node) -> Values:
        """What the expression may stand for."""
        node = unwrapped(node, self.work)
        if node.values is not None:
            return node.values
        if self.work.depth >= MOST_DEPTH:
            return (OPAQUE,)
        self.work.depth += 1
        try:
            node.values = self.worked_out(node)
        finally:
            self.work.depth -= 1
        return node.values

    def worked_out(self, node: Node) -> Values:
        if node.type in _NAMES:
            return self.named(self.name_of(node), node.scope, node.region, node.start)
        if node.type in ACCESS:
            return self.accessed(node)
        if node.type == "call_expression":
            return self.answered(node)
        if node.type == "binary_expression":
            return self.added(node)
        if node.type == "string":
            return joined([self.name_of(part) for part in node.children])
        if node.type == "template_string":
            return joined([self.part_of_template(part) for part in node.children[:64]])
        if node.type == "number":
            return (Value("text", self.name_of(node)[:32]),)
        return (OPAQUE,)

    def named(self, name: str, scope: Scope, region: Region, order: int) -> Values:
        binding = scope.find(name, self.work)
        return (
            (HOST.get(name, OPAQUE),) if binding is None else as_alias(binding.read(region, order, self.work))
        )

    def accessed(self, node: Node) -> Values:
        owner = node.get("object")
        if owner is None:
            return (OPAQUE,)
        name = self.property_of(node)
        found = {
            self.part(value, name, literal=node.type != "member_expression"): None
            for value in self.value(owner)
        }
        if name == "constructor" and self.makes_functions(unwrapped(owner, self.work)):
            return (Value("eval"),)
        return tuple(found)

    def part(self, value: Value, name: str | None, *, literal: bool) -> Value:
        """What a property of that name is."""
        if value.what == "namespace":
            if name == "constructor" or name in _INHERITED:
                return OPAQUE
            return member(value, name, literal=literal)
        if value.what == "table":
            return DYNAMIC if name is None else HOST.get(name, OPAQUE)
        return OPAQUE

    def makes_functions(self, owner: Node) -> bool:
        """`(() => {}).constructor` and its kin make functions out of text."""
        if owner.type in FUNCTIONS or self.property_of(owner) == "constructor":
            return True
        callee = owner.get("function")
        words = "" if callee is None else self.text[callee.start : callee.end].decode(errors="replace")
        return words in ("Object.getPrototypeOf", "Reflect.getPrototypeOf")

    def property_of(self, node: Node) -> str | None:
        if node.type == "member_expression":
            name = node.get("property")
            return None if name is None else self.name_of(name)
        index = node.get("index") if node.type == "subscript_expression" else None
        return None if index is None else the_text(self.value(index))

    def is_get(self, call: Node) -> bool:
        callee = call.get("function")
        return callee is not None and self.text[callee.start : callee.end] == b"Reflect.get"

    def answered(self, call: Node) -> Values:
        """Calls whose result the text tells: `Reflect.get(codemode, "a")`, `"a".concat("b")`, `[].join()`."""
        given = self.given(call)
        if self.is_get(call) and len(given) > 1:
            name = the_text(self.value(given[1]))
            return tuple(self.part(value, name, literal=True) for value in self.value(given[0]))
        callee = call.get("function")
        owner = None if callee is None else callee.get("object")
        if callee is None or owner is None or callee.type != "member_expression":
            return (OPAQUE,)
        word = self.property_of(callee)
        inner = unwrapped(owner, self.work)
        if word == "concat" and inner.type != "array":
            return joined([the_text(self.value(each)) for each in [owner, *given[:32]]])
        if word == "join" and inner.type == "array" and len(inner.children) < 128:
            separator = the_text(self.value(given[0])) if given else ","
            parts = [the_text(self.value(each)) for each in inner.listed]
            return (OPAQUE,) if separator is None else joined(parts, separator)
        return (OPAQUE,)

    def added(self, node: Node) -> Values:
        """`a + b + c`, from the right so that long sums need no depth."""
        parts: list[str | None] = []
        at = node
        while len(parts) < 64:
            self.work.spend()
            operator, left, right = at.get("operator"), at.get("left"), at.get("right")
            if operator is None or left is None or right is None or self.name_of(operator) != "+":
                return (OPAQUE,)
            parts.append(the_text(self.value(right)))
            at = unwrapped(left, self.work)
            if at.type != "binary_expression":
                parts.append(the_text(self.value(at)))
                return joined(parts[::-1])
        return (OPAQUE,)

    def part_of_template(self, part: Node) -> str | None:
        if part.type != "template_substitution":
            return self.name_of(part)
        return the_text(self.value(part.children[0])) if part.children else None
