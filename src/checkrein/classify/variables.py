"""Variables of a shell line: what is assigned, exported, declared or local, and what a name stands for.

Mixed into the shell walk; assignments that redirect other programs are reported through environment.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkrein.classify import environment
from checkrein.classify.expand import SECRET_NAME, text_of
from checkrein.classify.expand import environment as environment_word
from checkrein.classify.words import EMPTY, HOLE, LITERAL, OPEN, UNKNOWN, Word

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tree_sitter import Node

    from checkrein.classify.expand import Expander
    from checkrein.classify.paths import Places

_HIDDEN_INDEX = re.compile(r"\w\[[^\]]*(?:\$\(|`)")
"""Arithmetic and array names are expanded again, even out of single quotes: `declare -i n='a[$(cmd)]'`."""
_REWIRES = frozenset(("BASH_CMDS", "BASH_ALIASES"))


class Variables:
    """The part of the walk that knows what names stand for."""

    if TYPE_CHECKING:
        variables: dict[str, Word]
        exported: set[str]
        commands: dict[str, None]
        functions: dict[str, Node | None]
        positional: list[Word] | None
        locals: dict[str, Word | None] | None
        cwd: str | None
        expander: Expander
        places: Places

        def find(self, kind: str, scope: str, target: str, why: str) -> None: ...
        def within(self, text: str) -> AbstractContextManager[None]: ...

    def lookup(self, name: str) -> Word:
        found = self.variables.get(name)
        if found is not None:
            return found
        if name in ("@", "*") or name.isdigit():
            return self._positional(name)
        return environment_word(name, self.places.home, self.cwd or self.places.cwd)

    def _positional(self, name: str) -> Word:
        if self.positional is None:
            return UNKNOWN
        if name in ("@", "*"):
            if not self.positional:
                return Word("") if not self.functions else Word(HOLE, OPEN)
            kind = max(w.kind for w in self.positional)
            return Word(" ".join(w.text for w in self.positional), kind)
        index = int(name[:4]) - 1
        if index < 0:
            return Word(HOLE, OPEN)
        return self.positional[index] if index < len(self.positional) else Word("", OPEN)

    def set_variable(self, name: str, value: Word) -> None:
        """A variable gets a value, by whatever builtin: `read PATH` is an assignment too."""
        self._judge(name, value, exported=name in self.exported)
        self.variables[name] = value

    def given(self, name: str, value: Word) -> None:
        """What a command finds in its environment belongs to what it is: `AWS_PROFILE=live make deploy`."""
        self.commands[f"{name}={value.text}".replace(HOLE, "…")] = None

    def _judge(self, name: str, value: Word, *, exported: bool) -> None:
        environment.judge(self, name, value, exported=exported)
        if name in _REWIRES:
            self.find("exec", "hijack", name, f"{name} makes a command name mean something else")
        if _HIDDEN_INDEX.search(value.text):
            self.find("exec", "shell", name, f"the value of {name} is run wherever it is taken for a number")

    def _assignment(self, node: Node) -> tuple[str, Word]:
        target = node.child_by_field_name("name")
        value_node = node.child_by_field_name("value")
        name = text_of(target) if target is not None else ""
        if target is not None and target.type == "subscript":
            self.expander.inside(target)
            name = name.partition("[")[0]
        if value_node is None:
            return name, EMPTY
        if value_node.type == "array":
            words = [w for child in value_node.children if child.is_named for w in self.expander.words(child)]
            kind = max((w.kind for w in words), default=LITERAL)
            return name, Word(" ".join(w.text for w in words), kind)
        value = self.expander.word(value_node)
        if any(child.type == "+=" for child in node.children):
            before = self.lookup(name)
            value = Word(before.text + value.text, max(before.kind, value.kind), before.taint | value.taint)
        return name, value

    def assign(self, node: Node) -> None:
        self.set_variable(*self._assignment(node))

    def assignments(self, node: Node, _stdin: Word | None) -> Word:
        if node.type == "variable_assignment":
            self.assign(node)
        else:
            for child in node.children:
                if child.type == "variable_assignment":
                    self.assign(child)
        return EMPTY

    def declaration(self, node: Node, _stdin: Word | None) -> Word:
        words = text_of(node).split(None, 2)
        keyword = words[0] if words else ""
        with self.within(text_of(node)):
            self.hidden_index(node)
            options = [
                text_of(c) for c in node.children if c.type == "word" and (c.text or b"").startswith(b"-")
            ]
            exported = keyword == "export" or any("x" in option for option in options)
            named = False
            flags = set("".join(options)) - {"-"}
            if "n" in flags:
                self.find("exec", "unknown", keyword, "it makes one variable stand for another")
            # Every word of a declaration is expanded before the first variable changes.
            values = [self._assignment(c) for c in node.children[1:] if c.type == "variable_assignment"]
            for name, value in values:
                named = True
                self._make_local(keyword, name)
                self._judge(name, value, exported=exported or name in self.exported)
                self.variables[name] = UNKNOWN if set("".join(options)) & set("luni") else value
                if exported:
                    self.exported.add(name)
            for child in node.children[1:]:
                if child.type == "variable_assignment":
                    continue
                if child.type == "variable_name":
                    named = True
                    name = text_of(child)
                    self.find("note", "state", name, "it changes this shell")
                    if exported:
                        self.exported.add(name)
                        self._judge(name, self.lookup(name), exported=True)
                    if "p" in flags and SECRET_NAME.search(name):
                        self.find("secret", "environment", name, f"it prints {name}")
                elif child.is_named and child.type != "word":
                    named = True
                    self._declared(keyword, self.expander.words(child), exported=exported)
            if not named and keyword != "local":
                self.find(
                    "secret", "environment", keyword, f"`{keyword}` prints variables, secrets among them"
                )
        return EMPTY

    def _declared(self, keyword: str, words: list[Word], *, exported: bool) -> None:
        """`export "NAME=value"`, `export $NAME`: words that become assignments once they are expanded."""
        for word in words:
            name, mark, text = word.text.partition("=")
            # INVARIANT: a declaration in quotes is a declaration
            if not name.isidentifier():
                if not word.literal:
                    self.find("exec", "unknown", word.shown, "which variable it sets cannot be known")
                continue
            value = word._replace(text=text) if mark else self.lookup(name)
            self._make_local(keyword, name)
            self._judge(name, value, exported=exported or name in self.exported)
            self.variables[name] = value
            if exported:
                self.exported.add(name)

    def _make_local(self, keyword: str, name: str) -> None:
        if self.locals is not None and keyword in ("local", "declare", "typeset"):
            self.locals.setdefault(name, self.variables.get(name))

    def hidden_index(self, node: Node) -> None:
        if _HIDDEN_INDEX.search(text_of(node)):
            self.find("exec", "shell", text_of(node)[:60], "an array index in it is run as a command")

    def unset(self, node: Node, _stdin: Word | None) -> Word:
        with self.within(text_of(node)):
            self.hidden_index(node)
            self.find("note", "state", "unset", "it changes this shell")
            for child in node.children:
                if child.type == "variable_name":
                    self.variables.pop(text_of(child), None)
        return EMPTY
