"""Arguments against a grammar: which words are options, which are values, which are operands.

Called by commands.py and the handlers. What the grammar does not know is reported, never guessed away.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from checkrein.classify.tables import Option, Spec
from checkrein.classify.words import DYNAMIC, Word

_TELLING = re.compile(
    r"(?:^|[-_.:])(?:exec|cmd|command|program|plugin|script|eval|hook|write|update|output|out|o|dest|log-?file|"
    r"logfile|save|dump-to|config|cfg|conf|rc-?file|setopt|preload|require|load|agent|javaagent|init|import|host|"
    r"server|url|uri|endpoint|bootstrap-server|registry|index|source|proxy|upload|download|delete|remove|rm|force|"
    r"fix|apply|in-?place|install|exe|executable|binary|python|interpreter|shell|editor|pager|wrapper|compiler|"
    r"linker|kubeconfig|gemfile|manifest|working-dir|directory|chdir|dir|root|prefix|cwd|generate|bump|"
    r"password-file|external)(?=$|[-_.:]|s$|ute$)"
)
_LOOKALIKE = re.compile(
    r"^(?:no-.*|(?:.*-)?(?:format|level|style|width|color|colou?rs|timeout|delimiter|separator|name|only|type|first|"
    r"pattern|ignore|exclude|include|context|limit|size|count|depth|sort|filter|fields?)|"
    r"(?:show|list|print|with|hide|group|ignore|skip)-.*|force-colou?r|group-directories.*|server-side.*|d|dirs?|directory|"
    r"dirsfirst|classify)$"
)
_OFF = ("none", "false", "no", "off", "0")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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
    unlisted: list[Given]
    """Options an `open` command was given that its table does not list."""

    def has(self, *names: str) -> bool:
        return any(option.name in names for option in self.given)

    def role(self, role: str) -> bool:
        if role == "dry":
            return self._dry()
        return any(option.role == role for option in self.given)

    def _dry(self) -> bool:
        """The last word on it counts: `--dry-run=client --dry-run=none` is no dry run."""
        told = [option for option in self.given if option.role == "dry"]
        cancelled = any(option.name.startswith("--no-dry") for option in self.unlisted)
        last = told[-1].value if told else None
        return bool(told) and not cancelled and not (last is not None and last.text in _OFF)


def dry_run(words: list[Word]) -> bool:
    """Whether `--dry-run` is asked for, not cancelled later, and not part of a command behind `--`."""
    dry = False
    for word in words:
        name, mark, text = word.text.partition("=")
        if word.text == "--":
            break
        if name == "--dry-run":
            dry = not (mark and text in _OFF)
        elif name == "--no-dry-run":
            dry = False
    return dry


def telling(name: str) -> bool:
    """Whether an option nobody listed says by its name that it runs, loads, writes, removes or connects."""
    plain = _CAMEL.sub("-", name.lstrip("-+")).lower()
    return not _LOOKALIKE.match(plain) and bool(_TELLING.search(plain))


def parse(spec: Spec, words: list[Word], *, stop: bool = False) -> Parsed:
    """`words` (without the command name) against `spec`; with `stop`, options end at the first operand."""
    given: list[Given] = []
    operands: list[Word] = []
    unknown: list[str] = []
    unlisted: list[Given] = []
    if spec.style == "plain":
        return Parsed(given, list(words), unknown, unlisted)
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
            before = len(unknown)
            if read(spec, word, following, given, unknown):
                index += 1
            if spec.open and len(unknown) > before:
                del unknown[before:]
                unlisted.append(_unlisted(word, following))
            if stop and given and spec.handler == "interpreter" and given[-1].name in spec.needs.split():
                operands.extend(words[index:])
                break
            continue
        if word.kind == DYNAMIC and not word.quoted and not word.known and not spec.open:
            unknown.append("an option or operand nobody can know")
        operands.append(word)
        if stop:
            operands.extend(words[index:])
            break
    return Parsed(given, operands, unknown, unlisted)


def _unlisted(word: Word, following: Word | None) -> Given:
    name, mark, text = word.text.partition("=")
    if mark:
        return Given(name, "attached", word._replace(text=text))
    return Given(name, "apart", following if following and not following.text.startswith("-") else None)


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
            unknown.append(name if position == 1 else f"{name} in {word.shown}")
            if spec.open:
                _behind(spec, text[position + 1 :], given)
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


def _behind(spec: Spec, letters: str, given: list[Given]) -> None:
    """`-lw`: a letter nobody listed does not hide the flags bundled behind it."""
    if len(letters) > 3 or not letters.isalpha():
        return
    for letter in letters:
        option = spec.options.get(f"-{letter}")
        if option is not None and not option.value and option.role != "text":
            given.append(Given(f"-{letter}", option.role, None))


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
