"""Redirections: what a command is fed from, and where what it prints goes.

The part of the shell walk that turns `<`, `>` and here-documents into reads, writes and connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkrein.classify import arming
from checkrein.classify.words import DYNAMIC, EMPTY, HOLE, LITERAL, NETWORK, OPEN, SECRET, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from checkrein.classify.expand import Expander
    from checkrein.classify.paths import Places


def _operator(node: Node) -> str:
    return next((child.type for child in node.children if not child.is_named), "")


class Redirects:
    """Mixed into the walk; it uses the walk's words, places and findings."""

    if TYPE_CHECKING:
        expander: Expander
        places: Places
        cwd: str | None

        def statement(self, node: Node, stdin: Word | None = None) -> Word: ...
        def find(self, kind: str, scope: str, target: str, why: str) -> None: ...
        def unclear(self, why: str) -> None: ...

    def redirected(self, node: Node, stdin: Word | None) -> Word:
        """A statement with redirections behind it (and, after a here-document, the rest of its line)."""
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        feed = self.inputs(redirects, stdin)
        output = self.statement(body, feed) if body is not None else EMPTY
        output = self.outputs(redirects, output)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                output = self._after_heredoc(redirect, output)
        return output

    def _after_heredoc(self, redirect: Node, output: Word) -> Word:
        for child in redirect.children:
            if child.type == "pipeline":
                feed = output
                for stage in child.children:
                    if stage.is_named:
                        feed = self.statement(stage, feed)
                output = feed
            elif child.is_named and child.type not in (
                "heredoc_start",
                "heredoc_body",
                "heredoc_end",
                "file_redirect",
                "herestring_redirect",
                "file_descriptor",
            ):
                if child.type in (
                    "word",
                    "string",
                    "raw_string",
                    "concatenation",
                    "simple_expansion",
                    "expansion",
                ):
                    self.unclear("words behind a here-document are not understood")
                    self.expander.words(child)
                else:
                    output = self.statement(child, None)
        return output

    def inputs(self, redirects: list[Node], stdin: Word | None) -> Word | None:
        for node in redirects:
            if node.type == "herestring_redirect":
                named = [child for child in node.children if child.is_named]
                stdin = self.expander.word(named[-1]) if named else EMPTY
                if stdin.taint & SECRET:
                    self.find("read", "secret", "environment", "it is fed a secret variable")
            elif node.type == "heredoc_redirect":
                stdin = self._heredoc(node)
                stdin = self.inputs([c for c in node.children if c.type == "file_redirect"], stdin)
            elif _operator(node) in ("<", "<&", "<>"):
                stdin = self.read_target(node)
        return stdin

    def _heredoc(self, node: Node) -> Word:
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is None:
            return EMPTY
        text = (body.text or b"").decode("utf-8", "replace")
        raw = (start.text or b"") if start is not None else b""
        if raw.startswith((b"'", b'"', b"\\")):
            return Word(text, quoted=True)
        kind, taint = LITERAL, 0
        for child in body.children:
            if child.is_named and child.type not in ("heredoc_content", "string_content"):
                for word in self.expander.words(child):
                    kind, taint = max(kind, word.kind), taint | word.taint
        if "`" in text:
            self.expander.inside(body)
            self.expander.backticks(text)
            kind = DYNAMIC
        return Word(text if kind == LITERAL else f"{text}{HOLE}", kind, taint)

    def read_target(self, node: Node) -> Word:
        """The file a command reads from; its content is not known."""
        word = self._target(node)
        if word is None or word.text.isdigit() or word.text == "-":
            return Word(HOLE, DYNAMIC)
        if _operator(node) == "<>":
            self._write(word)
        if word.text.startswith("/dev/fd/") and ".." not in word.text:
            return Word(HOLE, DYNAMIC, word.taint)
        if self._socket(word):
            return Word(HOLE, DYNAMIC, NETWORK)
        place = self.places.place(word, self.cwd)
        self.find("read", place.scope, place.path, f"it reads {word.shown} ({place.scope})")
        return Word(HOLE, DYNAMIC, SECRET if place.scope == "secret" else word.taint)

    def outputs(self, redirects: list[Node], output: Word) -> Word:
        """Where output goes; what still flows on to a pipe."""
        for node in redirects:
            if node.type == "heredoc_redirect":
                output = self.outputs([c for c in node.children if c.type == "file_redirect"], output)
            elif node.type == "file_redirect" and _operator(node) in (
                ">",
                ">>",
                ">|",
                "&>",
                "&>>",
                ">&",
                "<>",
            ):
                word = self._target(node)
                if word is None or word.text.isdigit() or word.text in ("-", ""):
                    continue
                if word.text.startswith("/dev/fd/") and ".." not in word.text:
                    continue
                if _operator(node) == ">&" and word.kind == OPEN and not word.known:
                    self.find(
                        "write", "unknown", word.shown, "it writes to a file descriptor nobody can know"
                    )
                elif not self._socket(word):
                    self._write(word)
        return output

    def _target(self, node: Node) -> Word | None:
        named = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        if not named:
            return None
        for extra in named[1:]:
            self.expander.words(extra)
            self.unclear("words behind a redirection are not understood")
        return self.expander.word(named[0])

    def _write(self, word: Word) -> None:
        place = self.places.place(word, self.cwd)
        if place.scope == "null":
            return
        armed = arming.what(place.path)
        if armed and place.scope in ("project", "src", "docs", "tests", "home", "tmp", "outside", "unknown"):
            self.find("write", "armed", place.path, f"it writes {word.shown}, which {armed}")
        else:
            self.find("write", place.scope, place.path, f"it writes {word.shown} ({place.scope})")

    def _socket(self, word: Word) -> bool:
        if not word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            return False
        self.find("network", "outside", word.shown, f"it opens a connection through {word.shown}")
        return True
