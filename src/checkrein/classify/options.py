"""Arguments against a grammar: which words are options, which are values, which are operands.

Called by commands.py and the handlers. What the grammar does not know is reported, never guessed away.
"""

from __future__ import annotations

from typing import NamedTuple

from checkrein.classify.tables import Option, Spec
from checkrein.classify.words import DYNAMIC, Word

_WORST = ("shell", "exec", "code", "write", "delete", "config", "url", "host", "high", "medium")


class Given(NamedTuple):
    """An option as it was given: its canonical name, its role and its value if it took one."""

    name: str
    role: str
    value: Word | None


class Parsed(NamedTuple):
    """A command's arguments, sorted out."""

    given: list[Given]
    operands: list[Word]
    unknown: list[str]

    def has(self, *names: str) -> bool:
        return any(option.name in names for option in self.given)

    def role(self, role: str) -> bool:
        return any(option.role == role for option in self.given)


def parse(spec: Spec, words: list[Word], *, stop: bool = False) -> Parsed:
    """`words` (without the command name) against `spec`; with `stop`, options end at the first operand."""
    given: list[Given] = []
    operands: list[Word] = []
    unknown: list[str] = []
    if spec.style == "plain":
        return Parsed(given, list(words), unknown)
    read = _long_style if spec.style == "long" else _gnu_style
    index, count = 0, len(words)
    while index < count:
        word = words[index]
        text = word.text
        index += 1
        if text == "--" and word.literal:
            operands.extend(words[index:])
            break
        if len(text) > 1 and text[0] in "-+" and (text[0] == "-" or text in spec.options):
            following = words[index] if index < count else None
            if read(spec, word, following, given, unknown):
                index += 1
            continue
        if word.kind == DYNAMIC and not word.quoted and not word.known and not spec.open:
            unknown.append("an option or operand nobody can know")
        operands.append(word)
        if stop:
            operands.extend(words[index:])
            break
    return Parsed(given, operands, unknown)


def _find(spec: Spec, name: str) -> tuple[str, Option] | None:
    """An option by its name or by an abbreviation; an ambiguous one counts as the worst it could be."""
    option = spec.options.get(name)
    if option is not None:
        return name, option
    if spec.style == "gnu" and len(name) > 2:
        near = [(full, option) for full, option in spec.options.items() if full.startswith(name)]
        if near:
            return min(near, key=lambda item: _WORST.index(item[1].role) if item[1].role in _WORST else 99)
    return None


def _gnu_style(
    spec: Spec, word: Word, following: Word | None, given: list[Given], unknown: list[str]
) -> bool:
    """Read one `-abc` or `--long[=value]`; true when it used the following word as its value."""
    text = word.text
    if text.startswith("--"):
        return _named(spec, word, following, given, unknown)
    for position in range(1, len(text)):
        name = f"-{text[position]}"
        option = spec.options.get(name)
        if option is None:
            if position == 1 and "-#" in spec.options and text[1:].isdigit():
                given.append(Given("-#", "text", None))
                return False
            if not spec.open:
                unknown.append(name if position == 1 else f"{name} in {word.shown}")
            return False
        if not option.value:
            given.append(Given(name, option.role, None))
            continue
        rest = text[position + 1 :]
        if rest:
            given.append(Given(name, option.role, word._replace(text=rest)))
            return False
        if option.value == "?":
            given.append(Given(name, option.role, None))
            return False
        given.append(Given(name, option.role, following))
        return following is not None
    return False


def _long_style(
    spec: Spec, word: Word, following: Word | None, given: list[Given], unknown: list[str]
) -> bool:
    return _named(spec, word, following, given, unknown)


def _named(spec: Spec, word: Word, following: Word | None, given: list[Given], unknown: list[str]) -> bool:
    name, mark, value = word.text.partition("=")
    found = _find(spec, name)
    if found is None and spec.style == "long" and name.startswith("--"):
        found = _find(spec, name[1:])
    if found is None:
        if not spec.open:
            unknown.append(name)
        return False
    full, option = found
    if mark:
        given.append(Given(full, option.role, word._replace(text=value)))
        return False
    if option.value == "=":
        given.append(Given(full, option.role, following))
        return following is not None
    given.append(Given(full, option.role, None))
    return False


def assign(spec: Spec, operands: list[Word], *, all_same: bool = False) -> list[tuple[str, Word]]:
    """Operands with the roles `args` gives them: `text read*` or `read* write`."""
    roles = spec.args
    starred = next((i for i, role in enumerate(roles) if role.endswith("*")), None)
    if starred is None:
        padded = [*roles, *["extra"] * (len(operands) - len(roles))]
        return list(zip(padded, operands, strict=False))
    star = roles[starred][:-1]
    before, after = roles[:starred], roles[starred + 1 :]
    if all_same:
        after = ()
    head = operands[: len(before)]
    tail_at = max(len(head), len(operands) - len(after))
    middle, tail = operands[len(head) : tail_at], operands[tail_at:]
    return [*zip(before, head, strict=False), *((star, w) for w in middle), *zip(after, tail, strict=False)]
