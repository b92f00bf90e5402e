"""Syntax nodes into words: quotes, escapes, ANSI-C strings, tildes, variables, substitutions.

A half of the shell walk (shell.py is the other); it decides what a word is, never what it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from checkrein.classify.words import (
    DYNAMIC,
    GLOB,
    HOLE,
    LITERAL,
    OPEN,
    SECRET,
    SPLIT,
    UNKNOWN,
    Word,
    braces,
    is_glob,
    shield,
    unshield,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_PLAIN = re.compile(rb"[A-Za-z0-9_./:=@%+,^-]+\Z")
_ESCAPE = re.compile(r"\\(.)", re.S)
_DOUBLE_ESCAPE = re.compile(r"\\([$`\"\\\n])")
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.S)
_ANSI_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_PARAMETER = re.compile(r"\$\{([!#]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]]*\])?(.*)\}\Z", re.S)
_BACKTICK = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.S)
SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|PRIVATE_KEY|API_KEY|ACCESS_KEY"
    r"|SECRET_KEY|AUTH_KEY|PAT|WEBHOOK|DSN|CONNECTION_STRING|DATABASE_URL|REDIS_URL|MONGO_URL|MONGODB_URI)(?:$|_)"
    r"|(?:PASSWORD|TOKEN|SECRET|APIKEY|API_KEY)$|_(?:KEY|PASS|PWD|PW|CREDS?)$",
    re.IGNORECASE,
)
_DEFAULTS = (":-", "-", ":=", "=", ":+", "+", ":?", "?")
_NUMBERS = frozenset("?#$!-")


class Piece:
    """A word being put together."""

    __slots__ = ("kind", "quoted", "split", "taint", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.kind = LITERAL
        self.taint = 0
        self.quoted = False
        self.split = False

    def add(self, word: Word, quoted: bool, *, several: bool = False) -> None:
        """A value somebody else computed, placed into this word; `several` values stay apart in quotes."""
        self.kind = max(self.kind, word.kind if word.kind != GLOB or not quoted else LITERAL)
        self.taint |= word.taint
        text = word.text
        if quoted and not several:
            self.text.append(shield(text))
            return
        if HOLE in text:
            self.split = True
        self.text.append(
            SPLIT.join(re.split(r"[ \t\n]+", text)).replace("{", shield("{")).replace("~", shield("~"))
        )


class Expander:
    """What the walk needs to know about variables and substitutions to turn a node into words."""

    def __init__(
        self,
        *,
        lookup: Callable[[str], Word],
        run_node: Callable[[Node], Word],
        run_text: Callable[[str], Word],
        assign: Callable[[str, Word], None],
        home: str,
    ) -> None:
        self.lookup, self.run_node, self.run_text, self.assign = lookup, run_node, run_text, assign
        self.home = home
        self.dynamic = 0

    def words(self, node: Node) -> list[Word]:
        """The words a node expands to (none, one or, after braces and splitting, several)."""
        kind = node.type
        if kind in ("word", "number", "variable_name", "special_variable_name"):
            raw = node.text or b""
            if _PLAIN.match(raw):
                return [Word(raw.decode("ascii"))]
        elif kind == "raw_string":
            return [Word(text_of(node)[1:-1], quoted=True)]
        elif kind == "command_name" and node.child_count == 1:
            return self.words(node.children[0])
        piece = Piece()
        self._add(node, piece, quoted=False)
        return self._finish(piece)

    def word(self, node: Node) -> Word:
        """The node as exactly one word (redirect targets, assignments)."""
        words = self.words(node)
        if len(words) == 1:
            return words[0]
        return Word(" ".join(w.text for w in words), max((w.kind for w in words), default=LITERAL))

    def _finish(self, piece: Piece) -> list[Word]:
        text = "".join(piece.text)
        if piece.kind >= OPEN:
            self.dynamic += 1
        expanded = braces(text)
        if expanded is None:
            return [UNKNOWN]
        results = []
        for variant in expanded:
            for chunk in variant.split(SPLIT) if SPLIT in variant else (variant,):
                if not chunk and not piece.quoted:
                    continue
                results.append(self._one(chunk, piece))
        return results

    def _one(self, chunk: str, piece: Piece) -> Word:
        kind = piece.kind if HOLE in chunk or piece.kind == LITERAL else min(piece.kind, OPEN)
        if chunk.startswith("~"):
            name, slash, rest = chunk[1:].partition("/")
            if name in ("", "+") or name.isalnum():
                where = self.home if not name else f"/home/{name}" if name != "+" else "."
                chunk = where + slash + rest
        if kind == LITERAL and is_glob(chunk):
            kind = GLOB
        return Word(unshield(chunk), kind, piece.taint, not piece.split)

    def _add(self, node: Node, piece: Piece, *, quoted: bool) -> None:
        kind = node.type
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node, piece, quoted)
        elif kind in (
            "concatenation",
            "command_name",
            "array",
            "brace_expression",
            "regex",
            "extglob_pattern",
        ):
            if node.child_count and kind in ("concatenation", "command_name"):
                self._children(node, piece, quoted)
            else:
                self._plain(node, piece, quoted)
        elif not node.is_named:
            piece.text.append(shield(text_of(node)) if quoted else text_of(node))
        else:
            self._unknown(node, piece, quoted)

    def _children(self, node: Node, piece: Piece, quoted: bool) -> None:
        for child in node.children:
            self._add(child, piece, quoted=quoted)

    def _plain(self, node: Node, piece: Piece, quoted: bool) -> None:
        text = text_of(node)
        if "`" in text and self._backticks(text, piece):
            return
        if not quoted and "\\" in text:
            text = _ESCAPE.sub(lambda m: "" if m.group(1) == "\n" else shield(m.group(1)), text)
        piece.text.append(text)

    def backticks(self, text: str) -> bool:
        """Run the substitutions in text the grammar does not look into, such as here-documents."""
        return self._backticks(text, Piece())

    def _backticks(self, text: str, piece: Piece) -> bool:
        """Command substitutions the grammar left as plain text."""
        found = _BACKTICK.findall(text)
        for inner in found:
            self.run_text(re.sub(r"\\([`\\$])", r"\1", inner))
        if found:
            piece.kind, piece.split = DYNAMIC, True
            piece.text.append(HOLE)
        return bool(found)

    def _raw(self, node: Node, piece: Piece, quoted: bool) -> None:
        piece.quoted = True
        piece.text.append(shield(text_of(node)[1:-1] if not quoted else text_of(node)))

    def _ansi(self, node: Node, piece: Piece, _quoted: bool) -> None:
        piece.quoted = True
        piece.text.append(shield(ansi(text_of(node)[2:-1])))

    def _string(self, node: Node, piece: Piece, _quoted: bool) -> None:
        piece.quoted = True
        end = node.start_byte + 1
        source = node.text or b""
        start = node.start_byte
        for child in node.children:
            if child.start_byte > end:
                self._content(
                    source[end - start : child.start_byte - start].decode("utf-8", "replace"), piece
                )
            end = child.end_byte
            if child.type == "string_content":
                self._content(text_of(child), piece)
            elif child.is_named:
                self._add(child, piece, quoted=True)
            elif child.type not in ('"', '$"'):
                self._content(text_of(child), piece)

    def _content(self, text: str, piece: Piece) -> None:
        if "`" in text and self._backticks(text, piece):
            return
        if "\\" in text:
            text = _DOUBLE_ESCAPE.sub(lambda m: "" if m.group(1) == "\n" else m.group(1), text)
        piece.text.append(shield(text))

    def _variable(self, node: Node, piece: Piece, quoted: bool) -> None:
        name = text_of(node)[1:]
        piece.add(self.lookup(name), quoted, several=name == "@")

    def _parameter(self, node: Node, piece: Piece, quoted: bool) -> None:
        text = text_of(node)
        tainted = Piece()
        if "`" in text and self._backticks(text, tainted):
            piece.add(UNKNOWN, quoted)
            return
        match = _PARAMETER.match(text)
        if match is None:
            self.inside(node)
            piece.add(UNKNOWN, quoted)
            return
        sign, name, subscript, operator = match.groups()
        if subscript or not operator.startswith(_DEFAULTS):
            self.inside(node)
        if "$(" in operator and not operator.startswith(_DEFAULTS):
            # The grammar keeps a pattern as plain text; bash expands it.
            self.run_text('echo "' + operator.replace('"', "") + '"')
        value = self._value(sign, name, operator, node)
        if sign == "!" and not subscript and not operator:
            value = Word(HOLE, DYNAMIC, SECRET)  # whichever variable that names
        piece.add(value, quoted, several=(subscript or "") in ("[@]", "[*]") and not operator)

    def _value(self, sign: str, name: str, operator: str, node: Node) -> Word:
        value = self.lookup(name)
        if sign == "#":
            return Word("0", OPEN)
        if sign == "!":
            return UNKNOWN
        if not operator:
            return value
        if operator.startswith(_DEFAULTS):
            return self._default(name, operator, value, node)
        if "@P" in operator or "@E" in operator:
            self.run_text("eval")
            return UNKNOWN
        if value.kind == OPEN and "$(" not in operator:
            return Word(HOLE, OPEN, value.taint)
        return Word(HOLE, DYNAMIC, value.taint)

    def _default(self, name: str, operator: str, value: Word, node: Node) -> Word:
        """`${x:-word}`: the value when it is known, the default when only that is."""
        if "?" in operator[:2]:
            self.inside(node)
            return value
        fallback = Word("")
        named = [child for child in node.children if child.is_named and child.type != "variable_name"]
        if named:
            words = [word for child in named for word in self.words(child)]
            fallback = Word(" ".join(w.text for w in words), max((w.kind for w in words), default=LITERAL))
        if "+" in operator[:2]:
            return Word(fallback.text, max(fallback.kind, OPEN), value.taint)
        if value.kind == LITERAL:
            return value
        if "=" in operator[:2]:
            self.assign(name, fallback)
        return Word(fallback.text or HOLE, max(fallback.kind, OPEN), value.taint | fallback.taint)

    def _substitution(self, node: Node, piece: Piece, quoted: bool) -> None:
        text = text_of(node)
        if text.startswith("`") and "\\`" in text:
            piece.add(self.run_text(re.sub(r"\\([`\\$])", r"\1", text[1:-1])), quoted)
            return
        piece.add(self.run_node(node), quoted)

    def _process(self, node: Node, piece: Piece, _quoted: bool) -> None:
        inner = self.run_node(node)
        piece.kind = max(piece.kind, OPEN)
        piece.taint |= inner.taint
        piece.text.append(f"/dev/fd/{HOLE}")

    def _arithmetic(self, node: Node, piece: Piece, _quoted: bool) -> None:
        self.inside(node)
        piece.kind = max(piece.kind, OPEN)
        piece.text.append("0")

    def _unknown(self, node: Node, piece: Piece, quoted: bool) -> None:
        self.inside(node)
        piece.add(UNKNOWN, quoted)

    def inside(self, node: Node) -> None:
        """Run whatever an expression hides (tests, arithmetic, array subscripts)."""
        for child in node.children:
            if child.type in (
                "command_substitution",
                "process_substitution",
                "string",
                "expansion",
                "concatenation",
            ):
                self.words(child)
            elif child.type in ("word", "regex", "extglob_pattern", "ERROR") and b"`" in (child.text or b""):
                self._backticks(text_of(child), Piece())
            elif child.child_count:
                self.inside(child)


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def ansi(text: str) -> str:
    """The text of `$'...'`."""
    return _ANSI.sub(_ansi_character, text)


def _ansi_character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0xD800 or 0xF900 <= number < 0x110000 else HOLE
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    if code[0] == "c":
        return chr(ord(code[-1]) & 0x1F)
    return _ANSI_LETTERS.get(code, code)


_HANDLERS: dict[str, Callable[[Expander, Node, Piece, bool], None]] = {
    "word": Expander._plain,
    "number": Expander._plain,
    "variable_name": Expander._plain,
    "special_variable_name": Expander._plain,
    "raw_string": Expander._raw,
    "ansi_c_string": Expander._ansi,
    "string": Expander._string,
    "translated_string": Expander._string,
    "simple_expansion": Expander._variable,
    "expansion": Expander._parameter,
    "command_substitution": Expander._substitution,
    "process_substitution": Expander._process,
    "arithmetic_expansion": Expander._arithmetic,
}


def environment(name: str, home: str, cwd: str | None) -> Word:
    """A variable nobody set in this line: from the user's own environment."""
    if name == "HOME":
        return Word(home)
    if name == "PWD":
        return Word(cwd) if cwd else Word(HOLE, OPEN)
    if name == "IFS":
        return Word(" ")
    if name in _NUMBERS or name in (
        "RANDOM",
        "SECONDS",
        "LINENO",
        "UID",
        "EUID",
        "PPID",
        "BASHPID",
        "COLUMNS",
        "LINES",
    ):
        return Word("0", OPEN)
    return Word(HOLE, OPEN, SECRET if SECRET_NAME.search(name) else 0)
