"""A shell line, parsed and walked: every command in it is met, with what is known of its words and input.

Syntax only. What a command does is asked of commands.py; what a word is, of expand.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from checkrein.call import Category, Effect
from checkrein.classify import domains
from checkrein.classify.expand import Expander, text_of
from checkrein.classify.findings import Finding, Part
from checkrein.classify.normalise import MAX_LENGTH, normalise
from checkrein.classify.paths import Places
from checkrein.classify.redirects import Redirects
from checkrein.classify.tables import Tables
from checkrein.classify.variables import Variables
from checkrein.classify.words import DYNAMIC, EMPTY, GLOB, HOLE, LITERAL, NAMES, OPEN, UNKNOWN, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_PARTS = 240
MAX_DEPTH = 24
MAX_NODES_DEEP = 120
_ARITHMETIC = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()$\[\]{}#@.\"]*\Z")
_TWO_WORDS = re.compile(r"[A-Za-z_]\w*\s+-?[A-Za-z_]")
_REEXPANDING = frozenset(
    ("let", "test", "[", "printf", "read", "wait", "mapfile", "readarray", "unset", "export", "local")
)
_SHELL_WORDS = frozenset(("}", "]]", "fi", "done", "esac"))


class Overflow(Exception):  # noqa: N818 - a signal, not an error
    """The line has more parts or levels than we follow."""


@cache
def parser() -> Parser:
    """The bash grammar, loaded on the first shell call."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class Shell(Redirects, Variables):
    """One shell's state while its line is walked."""

    def __init__(
        self, tables: Tables, places: Places, run: Callable[[Shell, list[Word], Word | None], Word]
    ) -> None:
        self.tables, self.places, self._run = tables, places, run
        self.part = Part("")
        self.variables: dict[str, Word] = {}
        self.exported: set[str] = set()
        self.functions: dict[str, Node | None] = {}
        self.called: set[str] = set()
        self.positional: list[Word] | None = []
        self.locals: dict[str, Word | None] | None = None
        self.cwd: str | None = None
        self.depth = self.levels = self.nesting = self.parts = 0
        self.opaque = False
        self.commands: dict[str, None] = {}
        self.source = ""
        self.expander = Expander(
            lookup=self.lookup,
            run_node=self.substitution,
            run_text=self.text,
            assign=self.set_variable,
            home=places.home,
        )

    # -- what was found ------------------------------------------------------------------------------

    def find(self, kind: str, scope: str, target: str, why: str, category: Category | None = None) -> None:
        worst = domains.category(kind, scope) if category is None else category
        self.part.findings.append(Finding(Effect(kind, scope, target[:200]), worst, why))

    def found(self, output: Word, words: list[Word]) -> Word:
        """Names that globs among `words` stand for: unknown, and names of secrets when one could be."""
        globs = [word for word in words if word.kind == GLOB]
        secret = any(self.places.place(word, self.cwd).scope == "secret" for word in globs)
        return output._replace(kind=max(output.kind, OPEN), taint=output.taint | (NAMES if secret else 0))

    def unclear(self, why: str) -> None:
        """Something we cannot see through: never low, and complex."""
        self.opaque = True
        self.find("exec", "unknown", "", why)

    @contextmanager
    def within(self, text: str) -> Iterator[None]:
        """Collect what follows as a part of its own."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise Overflow
        outer, self.part = self.part, Part(text if len(text) <= 120 else f"{text[:119]}…")
        outer.children.append(self.part)
        self.depth += 1
        self.nesting = max(self.nesting, self.depth - 1)
        try:
            if self.depth > MAX_DEPTH:
                raise Overflow
            yield
        finally:
            self.part = outer
            self.depth -= 1

    # -- entry points --------------------------------------------------------------------------------

    def text(self, source: str, stdin: Word | None = None) -> Word:
        """Walk shell text in this shell; what it prints."""
        source, problems = normalise(source)
        self.source = self.source or source
        for problem in problems:
            self.unclear(problem)
        if len(source) > MAX_LENGTH:
            self.unclear("it is too long to be judged")
            return UNKNOWN
        if source.startswith("#!"):
            self.unclear("it is a whole script, with an interpreter line of its own")
        root = parser().parse(source.encode("utf-8", "replace")).root_node
        if root.has_error:
            # INVARIANT: a line we cannot parse is never low
            self.unclear("part of it is not shell syntax we understand")
            if "/dev/tcp/" in source or "/dev/udp/" in source:
                self.find("network", "outside", "/dev/tcp", "it may open a connection")
        output = self.statement(root, stdin)
        for name, body in list(self.functions.items()):
            if body is not None and name not in self.called:
                self.called.add(name)
                self.call_function(body, None)
        return output

    def subshell(self, source: str, stdin: Word | None = None, arguments: list[Word] | None = None) -> Word:
        """Walk shell text as `bash -c` would: its own variables, the same surroundings."""
        with self.scoped(), self.within(source):
            if arguments is not None:
                self.positional = arguments
            return self.text(source, stdin)

    def argv(self, words: list[Word], stdin: Word | None = None) -> Word:
        """Judge a command given as words (what a wrapper wraps)."""
        with self.within(" ".join(w.shown for w in words)):
            return self._run(self, words, stdin)

    @contextmanager
    def scoped(self) -> Iterator[None]:
        kept = (dict(self.variables), self.cwd, self.positional)
        try:
            yield
        finally:
            self.variables, self.cwd, self.positional = kept

    # -- statements ----------------------------------------------------------------------------------

    def statement(self, node: Node, stdin: Word | None = None) -> Word:
        handler = _STATEMENTS.get(node.type)
        self.levels += 1
        try:
            if self.levels > MAX_NODES_DEEP:
                raise Overflow
            if handler is not None:
                return handler(self, node, stdin)
            if not node.is_named or node.type in ("comment", "heredoc_body", "heredoc_end", "heredoc_start"):
                return EMPTY
            self.unclear(f"`{text_of(node)[:60]}` is a construct we do not model")
            self.expander.inside(node)
            return UNKNOWN
        finally:
            self.levels -= 1

    def sequence(self, node: Node, stdin: Word | None) -> Word:
        outputs = [self.statement(child, stdin) for child in node.children if child.is_named]
        return _merged(outputs)

    def subshell_node(self, node: Node, stdin: Word | None) -> Word:
        with self.scoped():
            return self.sequence(node, stdin)

    def compound(self, node: Node, stdin: Word | None) -> Word:
        if node.children and node.children[0].type in ("((", "$(("):
            return self.arithmetic(node)
        return self.sequence(node, stdin)

    def arithmetic(self, node: Node) -> Word:
        """`((x + 1))`; what is no arithmetic may be two subshells, as bash would find out."""
        self.hidden_index(node)
        inner = text_of(node)[2:-2]
        if not _ARITHMETIC.match(inner) or _TWO_WORDS.search(inner):
            self.unclear("it may be arithmetic or commands")
            self.subshell(f"( {inner} )")
        self.expander.inside(node)
        return EMPTY

    def pipeline(self, node: Node, stdin: Word | None) -> Word:
        feed = stdin
        for child in node.children:
            if child.is_named and child.type != "comment":
                with self.scoped():
                    feed = self.statement(child, feed)
        return feed or EMPTY

    def error(self, node: Node, stdin: Word | None) -> Word:
        for child in node.children:
            if child.type in _STATEMENTS:
                self.statement(child, stdin)
            elif child.is_named:
                self.expander.inside(child)
        return UNKNOWN

    def test(self, node: Node, _stdin: Word | None) -> Word:
        self.hidden_index(node)
        self.expander.inside(node)
        return EMPTY

    def branches(self, node: Node, stdin: Word | None) -> Word:
        """`if` and `case`: every branch is walked; a variable that differs afterwards is unknown."""
        outputs = []
        before = dict(self.variables)
        for child in node.children:
            if not child.is_named:
                continue
            if child.type in _STATEMENTS:
                outputs.append(self.statement(child, stdin))
            else:
                self.expander.words(child)
        self._forget_changed(before)
        return _merged(outputs)

    def _forget_changed(self, before: dict[str, Word]) -> set[str]:
        changed = {name for name, value in self.variables.items() if name in before and before[name] != value}
        for name in changed:
            self.variables[name] = Word(HOLE, DYNAMIC, self.variables[name].taint | before[name].taint)
        return changed

    def loop(self, node: Node, stdin: Word | None) -> Word:
        before = dict(self.variables)
        output = self.sequence(node, stdin)
        if self._forget_changed(before):
            output = self.sequence(node, stdin)
        return output

    def for_loop(self, node: Node, stdin: Word | None) -> Word:
        name, values = "", []
        body = None
        for child in node.children:
            if child.type == "variable_name" and not name:
                name = text_of(child)
            elif child.type == "do_group":
                body = child
            elif child.is_named:
                values += self.expander.words(child)
        if body is None:
            return UNKNOWN
        outputs = []
        for value in _distinct(values, self.positional):
            self.set_variable(name, value)
            before = dict(self.variables)
            outputs.append(self.sequence(body, stdin))
            if self._forget_changed(before):
                self.variables[name] = value
                outputs.append(self.sequence(body, stdin))
        return _merged(outputs)

    def c_style_for(self, node: Node, stdin: Word | None) -> Word:
        for child in node.children:
            if child.type == "variable_assignment":
                name, _ = self._assignment(child)
                self.variables[name] = Word("0", OPEN)
            elif child.type not in ("do_group", "compound_statement") and child.child_count:
                self.expander.inside(child)
        body = node.child_by_field_name("body")
        return self.loop(body, stdin) if body is not None else UNKNOWN

    def function(self, node: Node, _stdin: Word | None) -> Word:
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        name = text_of(name_node) if name_node is not None else ""
        if name in self.functions and self.functions[name] is not None and name not in self.called:
            self.call_function(self.functions[name], None)
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        self.inputs(redirects, None)
        self.outputs(redirects, EMPTY)
        if self.tables.spec(name) is not None:
            self.find("exec", "hijack", name, f"it redefines the command `{name}`")
        self.functions[name] = body
        self.called.discard(name)
        return EMPTY

    def call_function(
        self, body: Node | None, arguments: list[Word] | None, stdin: Word | None = None
    ) -> Word:
        if body is None:
            return UNKNOWN
        kept, outer = self.positional, self.locals
        self.positional, self.locals = arguments, {}
        try:
            return self.statement(body, stdin)
        finally:
            for name, value in (self.locals or {}).items():
                if value is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = value
            self.positional, self.locals = kept, outer

    def command(self, node: Node, stdin: Word | None) -> Word:
        words: list[Word] = []
        assigned: list[tuple[str, Word]] = []
        redirects = []
        with self.within(text_of(node)):
            for child in node.children:
                kind = child.type
                if kind == "variable_assignment":
                    assigned.append(self._assignment(child))
                elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                    redirects.append(child)
                elif child.is_named and kind != "comment":
                    words += self.expander.words(child)
                elif not child.is_named and kind not in ("(", ")"):
                    words.append(Word(text_of(child)))
            stdin = self.inputs(redirects, stdin)
            # `IFS= read -r line` changes how this one line is split, nothing else.
            for name, value in assigned if not words or words[0].text != "read" else ():
                self._judge(name, value, exported=bool(words))
            if words and words[0].text in _REEXPANDING:
                self.hidden_index(node)
            if not words:
                self.variables.update(assigned)
                return EMPTY
            output = self._run(self, words, stdin) if words[0].text not in _SHELL_WORDS else EMPTY
            return self.outputs(redirects, output)

    def substitution(self, node: Node) -> Word:
        """`$(...)`, backticks, `<(...)`: what its commands print."""
        with self.scoped():
            output = self.sequence(node, None)
        for child in node.children:
            if child.type == "file_redirect":
                return Word(HOLE, DYNAMIC, self.read_target(child).taint)
        return output._replace(text=output.text.rstrip("\n"))


def _merged(outputs: list[Word]) -> Word:
    """What several commands print, one after the other."""
    spoken = [word for word in outputs if word != EMPTY]
    if not spoken:
        return EMPTY
    if len(spoken) == 1:
        return spoken[0]
    taint = 0
    for word in spoken:
        taint |= word.taint
    kind = max(word.kind for word in spoken)
    return Word("\n".join(word.text for word in spoken), kind, taint)


def _distinct(values: list[Word], positional: list[Word] | None) -> list[Word]:
    """The values a loop is walked with: each literal that could matter, a few of the rest."""
    if not values:
        return list(positional or [])[:8] or [Word(HOLE, OPEN)]
    if len(values) > 8:
        kinds = max(w.kind for w in values)
        tainted = 0
        for value in values:
            tainted |= value.taint
        return [*values[:8], Word(HOLE, DYNAMIC if kinds != LITERAL else OPEN, tainted)]
    return values


_STATEMENTS: dict[str, Callable[[Shell, Node, Word | None], Word]] = {
    "program": Shell.sequence,
    "list": Shell.sequence,
    "do_group": Shell.sequence,
    "compound_statement": Shell.compound,
    "subshell": Shell.subshell_node,
    "pipeline": Shell.pipeline,
    "negated_command": Shell.sequence,
    "redirected_statement": Shell.redirected,
    "command": Shell.command,
    "declaration_command": Shell.declaration,
    "unset_command": Shell.unset,
    "variable_assignment": Shell.assignments,
    "variable_assignments": Shell.assignments,
    "test_command": Shell.test,
    "if_statement": Shell.branches,
    "elif_clause": Shell.branches,
    "else_clause": Shell.branches,
    "case_statement": Shell.branches,
    "case_item": Shell.branches,
    "while_statement": Shell.loop,
    "for_statement": Shell.for_loop,
    "c_style_for_statement": Shell.c_style_for,
    "function_definition": Shell.function,
    "ERROR": Shell.error,
}
