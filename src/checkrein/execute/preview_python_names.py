"""Which names a Python script binds, where, and what is written to each.

The Python preview calls it once, before it asks what any name stands for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import chain

import msgspec

from checkrein.execute.preview_scopes import (
    OPAQUE,
    Binding,
    Region,
    Scope,
    Value,
    Values,
    Work,
    Write,
    as_alias,
    joined,
    the_text,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MARKS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
_OPAQUE = (OPAQUE,)


class Place(msgspec.Struct):
    """Where a node stands and in which order it is met."""

    up: ast.AST | None
    scope: Scope
    region: Region
    order: int
    end: int = 0


Placed = dict[ast.AST, Place]


def walked(tree: ast.Module, work: Work) -> Placed:
    """Every node with its place, each before what is in it. No recursion: depth is the script's to choose."""
    top = Region(function=True)
    waiting: list[tuple[ast.AST, ast.AST | None, Scope, Region]] = [
        (tree, None, Scope(None, top, function=True), top)
    ]
    placed: Placed = {}
    order = 0
    while waiting:
        work.spend()
        node, up, scope, region = waiting.pop()
        if node in placed:
            # The second time it comes up, everything in it has been met.
            placed[node].end = order + 1
            continue
        order += 2
        placed[node] = Place(up, scope, region, order)
        waiting.append((node, up, scope, region))
        waiting += reversed(_inside(node, scope, region))
    return placed


Inside = list[tuple[ast.AST, ast.AST | None, Scope, Region]]


def _inside(node: ast.AST, scope: Scope, region: Region) -> Inside:
    """The children, each with its scope and region."""
    if isinstance(node, _FUNCTIONS):
        within = Region(region, function=True)
        inner = Scope(scope, within, function=True)
        own = node.body if isinstance(node.body, list) else [node.body]
        # Parameter names are bound inside; their defaults, annotations and the decorators are read outside.
        return _children(
            node, scope, region, {**dict.fromkeys(own, (inner, within)), node.args: (inner, within)}
        )
    if isinstance(node, ast.arguments):
        around = scope.around or scope
        outside = (around, around.region if region.around is None else region.around)
        read = [*node.defaults, *(each for each in node.kw_defaults if each is not None)]
        return _children(node, scope, region, dict.fromkeys(read, outside))
    if isinstance(node, ast.ClassDef):
        inner = Scope(scope, region, hidden=True)
        return _children(node, scope, region, dict.fromkeys(node.body, (inner, region)))
    if isinstance(node, _COMPREHENSIONS):
        first = node.generators[0]
        within = Region(region, loop=True)
        inner = Scope(scope, within)
        found = [(each, node, inner, within) for each in _parts(node) if each is not first]
        # What is looped over is met, and bound, before the element.
        return [(first, node, inner, within), *found]
    return _children(node, scope, region, _branches(node, scope, region))


def _children(
    node: ast.AST, scope: Scope, region: Region, elsewhere: dict[ast.AST, tuple[Scope, Region]]
) -> Inside:
    return [(child, node, *elsewhere.get(child, (scope, region))) for child in _parts(node)]


def _parts(node: ast.AST) -> list[ast.AST]:
    """The children; not the marks (`Load`, `Add`), which all nodes of a tree share."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, _MARKS)]


def _branches(node: ast.AST, scope: Scope, region: Region) -> dict[ast.AST, tuple[Scope, Region]]:
    """What may be skipped or repeated."""
    parts: list[list[ast.AST]] = []
    loop = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
    if isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While)):
        parts = [[*node.body], [*node.orelse]]
    elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        parts = [[*getattr(node, "body", [])], *([each] for each in getattr(node, "handlers", []))]
    elif isinstance(node, ast.Match):
        parts = [[case] for case in node.cases]
    elif isinstance(node, ast.IfExp):
        parts = [[node.body], [node.orelse]]
    elif isinstance(node, ast.BoolOp):
        parts = [[*node.values[1:]]]
    found: dict[ast.AST, tuple[Scope, Region]] = {}
    for part in parts:
        found.update(dict.fromkeys(part, (scope, Region(region, loop=loop))))
    return found


class Names:
    """Every name the script binds and what it may stand for."""

    def __init__(
        self,
        placed: Placed,
        value: Callable[[ast.expr], Values],
        host: Callable[[str], Value],
        part: Callable[[Value, str], Value],
        work: Work,
    ) -> None:
        self.placed, self.value, self.host, self.part, self.work = placed, value, host, part, work
        self.bound: set[ast.AST] = set()  # expressions whose value goes into a name
        self.annotations: set[ast.AST] = set()
        self.paired: set[ast.AST] = set()  # targets whose elements get their values one for one
        self.top = next(iter(placed.values())).scope
        self.elsewhere: dict[Scope, dict[str, str]] = {}
        for node, place in placed.items():
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                words = self.elsewhere.setdefault(place.scope, {})
                words.update(dict.fromkeys(node.names, type(node).__name__))
        for node, place in placed.items():
            work.spend()
            for name in self._bound_by(node):
                self._declare(self._scope_for(node, place.scope), name)
        for node, place in placed.items():
            work.spend()
            self._write_from(node, place)
        for node in placed:
            if isinstance(node, ast.Call):
                self._pass_arguments(node)

    def read(self, node: ast.Name) -> Values:
        place = self.placed[node]
        binding = self._find(place.scope, node.id)
        if binding is None:
            return (self.host(node.id),)
        values = binding.read(place.region, place.order, self.work)
        host = self.host(node.id)
        # A name of the host that is written over only perhaps is still the host's, under its own name.
        return tuple(each if each == host else as_alias((each,))[0] for each in values)

    def defines(self, name: str) -> bool:
        return name in self.top.names

    # Scopes

    def _scope_for(self, node: ast.AST, scope: Scope) -> Scope:
        if isinstance(node, ast.Name):
            up = self.placed[node].up
            if isinstance(up, ast.NamedExpr) and up.target is node:
                while not scope.function and not scope.hidden and scope.around is not None:
                    scope = scope.around
        return scope

    def _declare(self, scope: Scope, name: str) -> Binding:
        where = self.elsewhere.get(scope, {}).get(name)
        if where == "Global":
            scope = self.top
        elif where == "Nonlocal" and scope.around is not None:
            return scope.around.find(name, self.work) or scope.around.declare(name)
        # Outside functions a name that is not written yet is the host's.
        local = scope.function and scope is not self.top
        return scope.declare(name, OPAQUE if local else self.host(name))

    def _find(self, scope: Scope, name: str) -> Binding | None:
        if self.elsewhere.get(scope, {}).get(name) == "Global":
            return self.top.names.get(name)
        return scope.find(name, self.work)

    def _bound_by(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Name):
            return [] if isinstance(node.ctx, ast.Load) else [node.id]
        if isinstance(node, ast.arg):
            return [node.arg]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node.name]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return [each.asname or each.name.partition(".")[0] for each in node.names]
        name = node.rest if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
        known = isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping))
        return [name] if known and isinstance(name, str) else []

    # Writes

    def _write(self, node: ast.AST, name: str, source: Callable[[], Values], function: object = None) -> None:
        place = self.placed[node]
        binding = self._declare(self._scope_for(node, place.scope), name)
        binding.write(Write(self._when(node), place.region, source, function))

    def _when(self, node: ast.AST) -> int:
        """A name is written when the statement around it is done."""
        at = node
        while isinstance(up := self.placed[at].up, (ast.Tuple, ast.List, ast.Starred)):
            self.work.spend()
            at = up
        if isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            return self.placed[up].end
        return self.placed[node].order

    def _write_from(self, node: ast.AST, place: Place) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            self.annotations.add(node.annotation)
            if node.value is not None:
                self._assign(node.target, node.value)
        elif isinstance(node, ast.NamedExpr):
            self._assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._add(node, place)
        elif isinstance(node, _FUNCTIONS):
            self._define(node)
        elif isinstance(node, ast.Import):
            for each in node.names:
                self._import(node, each)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                found = self.part(self._module(node.module or ""), each.name)
                self._write(node, each.asname or each.name, Constant((found,)))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            self._write(node, node.id, Constant((self.host(node.id),)))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            up = place.up
            if not isinstance(
                up, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.Tuple, ast.List)
            ) or (isinstance(up, (ast.Tuple, ast.List)) and up not in self.paired):
                self._write(node, node.id, Constant(_OPAQUE))
        elif not isinstance(node, (ast.Name, ast.arg)):
            for name in self._bound_by(node):
                self._write(node, name, Constant(_OPAQUE))

    def _assign(self, target: ast.expr, source: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bound.add(source)
            function = source if isinstance(source, ast.Lambda) else None
            self._write(target, target.id, lambda: self.value(source), function)
        elif isinstance(target, (ast.Tuple, ast.List)) and _alike(target, source):
            self.paired.add(target)
            for each, given in zip(target.elts, getattr(source, "elts", []), strict=True):
                if isinstance(each, ast.Name):
                    self._assign(each, given)

    def _add(self, node: ast.AugAssign, place: Place) -> None:
        target, more = node.target, node.value
        if not isinstance(target, ast.Name):
            return
        name = target.id
        scope, region, order = place.scope, place.region, place.order

        def source() -> Values:
            binding = self._find(scope, name)
            if binding is None or not isinstance(node.op, ast.Add):
                return _OPAQUE
            before = the_text(binding.read(region, order, self.work))
            return joined([before, the_text(self.value(more))])

        self._write(target, name, source)

    def _import(self, node: ast.Import, each: ast.alias) -> None:
        found = self._module(each.name)
        self._write(node, each.asname or each.name.partition(".")[0], Constant((found,)))

    def _module(self, name: str) -> Value:
        return self.host(name) if name in ("codemode", "builtins") else OPAQUE

    def _define(self, node: Function) -> None:
        if not isinstance(node, ast.Lambda):
            self._write(node, node.name, Constant(_OPAQUE), node)
            if node.returns is not None:
                self.annotations.add(node.returns)
        listed = [*node.args.posonlyargs, *node.args.args]
        defaults = [*zip(listed[::-1], node.args.defaults[::-1], strict=False)]
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        for arg, default in [*defaults, *((arg, default) for arg, default in named if default is not None)]:
            self._give(arg, default)
        for arg in [*listed, *node.args.kwonlyargs]:
            if arg.annotation is not None:
                self.annotations.add(arg.annotation)

    def _give(self, arg: ast.arg, source: ast.expr) -> None:
        """A parameter gets a value: its default, or what a call passes."""
        self.bound.add(source)
        place = self.placed[arg]
        binding = self._declare(place.scope, arg.arg)
        binding.write(Write(place.order, place.region, lambda: self.value(source)), afar=True)

    def _pass_arguments(self, call: ast.Call) -> None:
        """What a function of this script is called with goes into its parameters."""
        function: object = call.func
        if isinstance(function, ast.Name):
            binding = self._find(self.placed[function].scope, function.id)
            if binding is None or len(binding.writes) != 1 or binding.afar:
                return
            function = binding.writes[0].function
        if not isinstance(function, _FUNCTIONS):
            return
        taken = function.args
        for arg, source in zip(chain(taken.posonlyargs, taken.args), call.args, strict=False):
            if isinstance(source, ast.Starred):
                break
            self._give(arg, source)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for arg in [*taken.args, *taken.kwonlyargs] if given else ():
            self.work.spend()
            if arg.arg in given:
                self._give(arg, given[arg.arg])


def _alike(target: ast.Tuple | ast.List, source: ast.expr) -> bool:
    """Whether both sides list as many elements, one for one."""
    if not isinstance(source, (ast.Tuple, ast.List)) or len(source.elts) != len(target.elts):
        return False
    return not any(isinstance(each, ast.Starred) for each in [*target.elts, *source.elts])


class Constant:
    """A value known at once."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def __call__(self) -> Values:
        return self._values
