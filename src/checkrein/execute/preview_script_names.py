"""Which names a JavaScript or TypeScript script declares, where, and what is written to each.

The script's preview calls it once, before it asks what any name stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from checkrein.execute.preview_scopes import (
    OPAQUE,
    Binding,
    Kind,
    Region,
    Scope,
    Value,
    Values,
    Work,
    Write,
    joined,
    the_text,
)
from checkrein.execute.preview_script_tree import ACCESS, Node, unwrapped

FUNCTIONS = frozenset(
    "function_declaration function_expression arrow_function method_definition generator_function"
    " generator_function_declaration".split()
)
_BLOCKS = frozenset(
    "statement_block for_statement for_in_statement switch_body catch_clause"
    " class_static_block class_body".split()
)
_LOOPS = frozenset("for_statement for_in_statement while_statement do_statement".split())
# (what it is in, its field): runs perhaps.
_PERHAPS = frozenset(
    {
        ("if_statement", "consequence"),
        ("if_statement", "alternative"),
        ("ternary_expression", "consequence"),
        ("ternary_expression", "alternative"),
        ("try_statement", "body"),
        ("try_statement", "handler"),
        ("binary_expression", "right"),
    }
)
_CASES = frozenset({"switch_case", "switch_default"})
_PATTERNS = frozenset(
    "object_pattern array_pattern pair_pattern assignment_pattern object_assignment_pattern"
    " rest_pattern".split()
)
_DECLARED = frozenset(
    {"class_declaration", "abstract_class_declaration", "enum_declaration", "internal_module"}
)

NameOf = Callable[[Node], str]
Parts = tuple[Node, ...]


class Script(Protocol):
    """What the names need of the script they stand in."""

    nodes: list[Node]
    work: Work

    def value(self, node: Node) -> Values: ...
    def name_of(self, node: Node) -> str: ...
    def given(self, call: Node) -> list[Node]: ...
    def part(self, value: Value, name: str | None, *, literal: bool) -> Value: ...
    def report(self, at: int, value: Value, kind: Kind) -> None: ...
    def settle(self, node: Node) -> None: ...


class Names:
    """Every name the script declares or writes to, with what is written."""

    def __init__(self, script: Script, host: dict[str, Value]) -> None:
        self.script, self.host, self.work = script, host, script.work
        self.top = _declare_names(script.nodes, script.name_of, self.work)
        for node in script.nodes:
            self.work.spend()
            self._write_from(node)
        for node in script.nodes:
            if node.type == "call_expression":
                self._pass_arguments(node)

    def _write_from(self, node: Node) -> None:
        if node.type == "variable_declarator":
            target, source = node.get("name"), node.get("value")
            if target is not None and source is not None:
                self._write(target, source, node.end, node.region)
        elif node.type == "assignment_expression":
            target, source = node.get("left"), node.get("right")
            if target is not None and source is not None:
                self._write(target, source, node.end, node.region)
        elif node.type == "augmented_assignment_expression":
            self._write_more(node)
        elif node.type == "for_in_statement":
            target = node.get("left")
            if target is not None:
                self._write(target, None, target.end, node.within)
        elif node.type in FUNCTIONS:
            self._write_function(node)
        elif node.type in ("update_expression", "class_declaration"):
            target = node.get("argument") or node.get("name")
            if target is not None and target.type == "identifier":
                self._write(target, None, node.end, node.region)

    def _write_function(self, node: Node) -> None:
        name = node.get("name")
        if name is not None and node.type.endswith("_declaration"):
            binding = node.scope.find(self.script.name_of(name), self.work)
            if binding is not None:
                # Functions are there before the first statement of their block.
                binding.write(Write(-1, node.scope.region, lambda: (OPAQUE,), node))
            name.seen = True
        for parameter in _parameters(node):
            default = parameter.get("value")
            target = parameter.get("pattern") or parameter
            if default is not None:
                self._write(target, default, default.end, node.within)

    def _write_more(self, node: Node) -> None:
        """`a += b`, `a ||= b` and their like."""
        target, source, operator = node.get("left"), node.get("right"), node.get("operator")
        if target is None or source is None or operator is None:
            return
        word = self.script.name_of(operator)
        if word in ("||=", "&&=", "??="):
            self._write(target, source, node.end, Region(node.region))
        elif word == "+=" and target.type == "identifier":
            binding = self._binding_of(target)
            before, more = target, source
            binding.write(
                Write(
                    node.end,
                    node.region,
                    lambda: joined([the_text(self.script.value(before)), the_text(self.script.value(more))]),
                )
            )
        else:
            self._write(target, None, node.end, node.region)

    def _pass_arguments(self, call: Node) -> None:
        """What a function of this script is called with goes into its parameters."""
        callee = call.get("function")
        if callee is None:
            return
        function = unwrapped(callee, self.work)
        if function.type == "identifier":
            binding = function.scope.find(self.script.name_of(function), self.work)
            if binding is None or len(binding.writes) != 1 or binding.afar:
                return
            written = binding.writes[0].function
            if not isinstance(written, Node):
                return
            function = written
        if function.type not in FUNCTIONS:
            return
        for target, source in zip(_parameters(function), self.script.given(call), strict=False):
            if source.type == "spread_element":
                return
            self._write(target.get("pattern") or target, source, source.end, source.region, afar=True)

    def _binding_of(self, name: Node) -> Binding:
        word = self.script.name_of(name)
        found = name.scope.find(word, self.work)
        if found is None:
            # Writing to a name nobody declared makes it a global one; the host's own cannot be written over.
            return Binding(self.top.region) if word in self.host else self.top.declare(word)
        return found

    def _write(
        self, target: Node, source: Node | None, order: int, region: Region, *, afar: bool = False
    ) -> None:
        """A value goes into a name, or in parts into several."""
        inner = None if source is None else unwrapped(source, self.work)
        if target.type == "identifier":
            if inner is not None:
                inner.bound = "name"
        elif inner is not None and target.type == "object_pattern":
            inner.bound = "parts"
        waiting: list[tuple[Node, Node | None, Parts]] = [(target, inner, ())]
        while waiting:
            self.work.spend()
            at, whole, parts = waiting.pop()
            if at.type in ("identifier", "shorthand_property_identifier_pattern"):
                at.seen = True
                written = whole if not parts and whole is not None and whole.type in FUNCTIONS else None
                values = Taken(self.script, whole, parts)
                self._binding_of(at).write(Write(order, region, values, written), afar=afar)
            elif at.type in ACCESS:
                self.script.settle(at)
            else:
                waiting += self._taken_apart(at, whole, parts)

    def _taken_apart(
        self, at: Node, whole: Node | None, parts: Parts
    ) -> list[tuple[Node, Node | None, Parts]]:
        """The parts of a pattern, each with the way to its value."""
        if at.type == "object_pattern":
            return [(child, whole, (*parts[-8:], child)) for child in at.children]
        if at.type == "pair_pattern":
            target = at.get("value")
            return [] if target is None else [(target, whole, parts)]
        if at.type in ("assignment_pattern", "object_assignment_pattern"):
            target, default = at.get("left"), at.get("right")
            if target is None:
                return []
            if default is not None and not parts:
                return [(target, default, ()), (target, whole, ())]
            return [(target, whole, parts)]
        if at.type == "rest_pattern":
            return [(child, whole, parts) for child in at.children]
        if at.type == "array_pattern":
            return self._elements(at, None if parts else whole)
        return []

    def _elements(self, pattern: Node, whole: Node | None) -> list[tuple[Node, Node | None, Parts]]:
        given = {} if whole is None or whole.type != "array" else _placed(whole)
        if any(child.type == "spread_element" for child in given.values()):
            given = {}
        found: list[tuple[Node, Node | None, Parts]] = []
        for place, child in _placed(pattern).items():
            source = None if child.type == "rest_pattern" else given.get(place)
            inner = None if source is None else unwrapped(source, self.work)
            if inner is not None and child.type == "identifier":
                inner.bound = "name"
            found.append((child, inner, ()))
        return found


def _placed(listing: Node) -> dict[int, Node]:
    """The elements of an array by their place; holes are left out."""
    place, found = 0, {}
    for child in listing.children:
        if child.type == ",":
            place += 1
        else:
            found[place] = child
    return found


class Taken:
    """The way from a value through patterns to one of its parts, walked when the part is needed."""

    def __init__(self, script: Script, whole: Node | None, parts: Parts) -> None:
        self.script, self.whole, self.parts = script, whole, parts

    def __call__(self) -> Values:
        if self.whole is None:
            return (OPAQUE,)
        values = self.script.value(self.whole)
        for part in self.parts:
            values = tuple(self.step(value, part) for value in values)
        return values

    def step(self, value: Value, part: Node) -> Value:
        if part.type == "rest_pattern":
            return value if value.what == "namespace" else OPAQUE
        key = part.get("key") or part.get("left") or part
        name: str | None
        if key.type == "computed_property_name":
            name = the_text(self.script.value(key.children[0])) if key.children else None
        elif key.type == "string":
            name = the_text(self.script.value(key))
        else:
            name = self.script.name_of(key)
        found = self.script.part(value, name, literal=False)
        if found.what == "dynamic":
            self.script.report(part.start, found, "dynamic")
            return OPAQUE
        return found


def _declare_names(nodes: list[Node], name_of: NameOf, work: Work) -> Scope:
    """Give every node its scope and region, and every scope its names."""
    top = Scope(None, Region(function=True), function=True)
    for node in nodes:
        work.spend()
        _place(node, top)
    for node in nodes:
        for scope, name in _declared(node, work):
            name.seen = True
            scope.declare(name_of(name))
    return top


def _parameters(function: Node) -> list[Node]:
    listed = function.get("parameters")
    single = function.get("parameter")
    return listed.children if listed is not None else [] if single is None else [single]


def _place(node: Node, top: Scope) -> None:
    up = node.up
    if up is None:
        node.scope = node.inner = top
        node.region = node.within = top.region
        return
    node.scope, node.region = up.inner, up.within
    if (up.type, node.field) in _PERHAPS or node.type in _CASES:
        node.region = Region(node.region)
    node.inner, node.within = node.scope, node.region
    if node.type in FUNCTIONS or (up.type == "public_field_definition" and node.field == "value"):
        node.within = Region(node.region, function=True)
        node.inner = Scope(node.scope, node.within, function=True)
    elif node.type in _LOOPS:
        node.within = Region(node.region, loop=True)
    if node.type in _BLOCKS and up.type not in FUNCTIONS:
        node.inner = Scope(node.scope, node.within)


def _declared(node: Node, work: Work) -> list[tuple[Scope, Node]]:
    """The names a node declares, each with its scope."""
    if node.type == "variable_declarator":
        up = node.up
        hoisted = up is not None and up.type == "variable_declaration"
        return _spread(_function(node.scope, work) if hoisted else node.scope, node.get("name"), work)
    if node.type == "for_in_statement":
        kind = node.get("kind")
        return [] if kind is None else _spread(node.inner, node.get("left"), work)
    if node.type == "catch_clause":
        return _spread(node.inner, node.get("parameter"), work)
    if node.type in FUNCTIONS:
        return _of_function(node, work)
    if node.type in _DECLARED:
        return _spread(node.scope, node.get("name"), work)
    if node.type == "import_specifier":
        for child in node.children:
            child.seen = True  # the name it has elsewhere says nothing here
        return _spread(node.scope, node.get("alias") or node.get("name"), work)
    if node.type in ("import_clause", "namespace_import"):
        return [(node.scope, child) for child in node.children if child.type == "identifier"]
    return []


def _of_function(node: Node, work: Work) -> list[tuple[Scope, Node]]:
    found: list[tuple[Scope, Node]] = []
    name = node.get("name")
    if name is not None and name.type == "identifier":
        found.append((node.scope if node.type.endswith("_declaration") else node.inner, name))
    for parameter in _parameters(node):
        found += _spread(node.inner, parameter.get("pattern") or parameter, work)
    return found


def _function(scope: Scope, work: Work) -> Scope:
    while not scope.function and scope.around is not None:
        work.spend()
        scope = scope.around
    return scope


def _spread(scope: Scope, pattern: Node | None, work: Work) -> list[tuple[Scope, Node]]:
    """The names in a pattern."""
    found: list[tuple[Scope, Node]] = []
    waiting = [] if pattern is None else [pattern]
    while waiting:
        work.spend()
        at = waiting.pop()
        if at.type in ("identifier", "shorthand_property_identifier_pattern", "type_identifier"):
            found.append((scope, at))
        elif at.type in ("pair_pattern", "assignment_pattern", "object_assignment_pattern"):
            target = at.get("value") if at.type == "pair_pattern" else at.get("left")
            waiting += [] if target is None else [target]
        elif at.type in _PATTERNS:
            waiting += at.children
    return found
