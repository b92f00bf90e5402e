"""Masks secrets in everything the ledger is about to store; `events` calls it before anything is written.

Only the secret goes, never the words around it: an auditor must still see what ran. Pure and linear-time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from checkrein.errors import ConfigError
from checkrein.ledger.assignments import HEAD, value_span
from checkrein.ledger.secrets import (
    BARE_SHAPE,
    COMMAND,
    HARMLESS_BEFORE,
    HARMLESS_INSIDE,
    HASH_HINTS,
    MASK,
    NAME_HINTS,
    NOUN,
    PEM,
    PEM_CUT_OFF,
    PERHAPS,
    PLACES,
    PROGRAM,
    PROGRAMS,
    SHAPE,
    SHAPE_HINTS,
    SHAPE_RUN,
    is_plain,
    masked_value,
    words_of,
)

TOO_DEEP = "[masked: too deep]"
MAX_DEPTH = 64


class Masking(msgspec.Struct, frozen=True):
    """The user's additions: key names in any spelling, RE2 patterns (group 1 if there is one, else all)."""

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


_NO_ADDITIONS = Masking()


_SHORT, _REMEMBERED = 2_000, 512
# Letters and signs from rare to common, as results and commands hold them; others are rarer still.
_COMMON = "z$79/6q3|8524j=1x0-{bvky_gw.:fhmpucldaintsero "


class Redactor:
    """Masks values and text. It holds the user's own names and patterns, and no state."""

    def __init__(self, masking: Masking = _NO_ADDITIONS) -> None:
        # Agents repeat themselves; what short texts became is remembered.
        self._short = lru_cache(_REMEMBERED)(self._masked)
        self._name = lru_cache(_REMEMBERED)(self._names_secret)
        self._weight = lru_cache(_REMEMBERED)(self._weighed)
        self._keys = tuple(filter(None, map(words_of, masking.keys)))
        self._hints = (*NAME_HINTS, *(max(key.split("_"), key=len) for key in self._keys))
        always = ("",)
        # The user's patterns come first: they were written for what is really there.
        self._passes: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
            *((always, partial(_apply, _user_pattern(pattern))) for pattern in masking.patterns),
            (SHAPE_HINTS, _shapes),
            (("private key",), partial(re.sub, PEM, _pem)),
            *((hints, partial(re.sub, pattern, _place)) for hints, pattern in PLACES),
            (self._hints, self._assignments),
            (tuple(PROGRAMS), partial(re.sub, COMMAND, _command)),
            (always, partial(BARE_SHAPE.sub, MASK)),
        )
        self._always = {number for number, (hints, _) in enumerate(self._passes) if "" in hints}
        self._gates = _gates([hints for hints, _ in self._passes])

    def value(self, value: Any) -> Any:
        """A deep copy with its secrets masked; what hangs under a secret name is masked whatever it is."""
        return self._copy(value, "", MAX_DEPTH)

    def text(self, text: str) -> str:
        """Text, a command line or an output with its secrets masked."""
        return self._short(text) if len(text) <= _SHORT else self._masked(text)

    def _masked(self, text: str) -> str:
        lowered, wanted = text.lower(), self._always
        for letter, hints in self._gates:
            if letter in lowered:
                for hint, number in hints:
                    if hint in lowered:
                        wanted = wanted | {number}
        for number in sorted(wanted):
            text = self._passes[number][1](text)
        return text

    def _copy(self, value: Any, secret: str, depth: int) -> Any:
        """`secret` is the secret name this value hangs under, or nothing."""
        if isinstance(value, str):
            return self.text(masked_value(value, secret) if secret else value)
        if isinstance(value, (dict, list, tuple)):
            if depth == 0:
                return TOO_DEEP
            if isinstance(value, dict):
                return self._copy_dict(value, secret, depth - 1)
            copies = self._copy_list(value, secret, depth - 1)
            return tuple(copies) if isinstance(value, tuple) else copies
        return MASK if secret and value is not None and not isinstance(value, bool) else value

    def _copy_dict(self, value: dict[Any, Any], above: str, depth: int) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                copy[key] = self._copy(item, above, depth)
                continue
            secret = key if self._is_secret(key) else above
            if above and secret is above and HARMLESS_INSIDE.fullmatch(key.lower()):
                secret = ""
            if not secret and key in ("value", "Value"):
                # `{"name": "DB_PASSWORD", "value": …}` names its secret next to it.
                labels = (value.get(label) for label in ("name", "Name", "key", "Key", "header"))
                secret = next((x for x in labels if isinstance(x, str) and self._is_secret(x)), "")
            masked = self.text(key) if len(key) > 16 else key
            copy[f"{masked} {len(copy)}" if masked in copy else masked] = self._copy(item, secret, depth)
        return copy

    def _copy_list(self, value: list[Any] | tuple[Any, ...], above: str, depth: int) -> list[Any]:
        copies = [self._copy(item, above, depth) for item in value]
        for index, item in enumerate(value):
            if isinstance(item, str) and (copies[index] == item or "=" in item):
                copies[index] = self._argument(value, index)
        return copies

    def _argument(self, words: list[Any] | tuple[Any, ...], index: int) -> str:
        """One word of a command line given as a list: whole, spaces and all, and with its flag before it."""
        word: str = words[index]
        name, sign, rest = word.partition("=")
        if sign and " " not in name and self._is_secret(name):
            return self.text(f"{name}={masked_value(rest, name)}")
        before = words[index - 1] if index else ""
        if isinstance(before, str) and "-" in (before[:1], word[:1]):
            lead = (each for each in words[: min(3, max(index - 1, 0))] if isinstance(each, str))
            start = " ".join([*lead, before, ""])
            quote = "'" if re.search(r"[\s\"'`|;&<>()$]", word) else ""
            line = start + quote + word.replace("'", "_") + quote
            masked = self.text(line)
            if masked != line and masked.startswith(start):
                return masked.removeprefix(start).strip("'")
        return self.text(word)

    def _is_secret(self, name: str) -> bool:
        return self._name(name) if len(name) <= _SHORT else self._names_secret(name)

    def _names_secret(self, name: str) -> bool:
        lowered = name.lower()
        return any(hint in lowered for hint in self._hints) and self._strength(words_of(name)) == 2

    def _weighed(self, name: str) -> tuple[str, int]:
        words = words_of(name)
        return words, self._strength(words)

    def _strength(self, words: str) -> int:
        """2: the name of a secret, 1: of a secret if the value looks like one, 0: of anything else."""
        if any(words == key or words.endswith(f"_{key}") for key in self._keys):
            return 2
        found = NOUN.search(words)
        if found is None:
            return 1 if PERHAPS.search(words) else 0
        return 0 if HARMLESS_BEFORE.fullmatch(found["glued"] or found["before"] or "") else 2

    def _assignments(self, text: str) -> str:
        pieces: list[str] = []
        kept = at = 0
        while head := HEAD.search(text, at):
            at = head.end()
            name = head["flag"] or head["name"]
            words, strength = self._weight(name) if len(name) <= _SHORT else self._weighed(name)
            if strength and (where := value_span(head, words, strength)):
                value = text[slice(*where)]
                masked = masked_value(value, words)
                if masked != value:
                    pieces += (text[kept : where[0]], masked)
                    kept = where[1]
                # A reference may hold secrets further in (`$(curl -H …)`): reading goes on inside it.
                if masked != value or MASK in value:
                    at = where[1]
        return "".join([*pieces, text[kept:]])


def _gates(passes: Sequence[Sequence[str]]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Every hint and the pass it is for, under its rarest letter: most texts hold few of those letters."""
    gates: dict[str, list[tuple[str, int]]] = {}
    for number, hints in enumerate(passes):
        for hint in filter(None, hints):
            gates.setdefault(min(hint, key=_COMMON.find), []).append((hint, number))
    return list(gates.items())


def _shapes(text: str) -> str:
    """Tokens that give themselves away; only what is long enough to be one is looked at closely."""
    lowered = text.lower()
    if any(hint in lowered for hint in HASH_HINTS):
        return re.sub(SHAPE, MASK, text)
    return SHAPE_RUN.sub(lambda run: re.sub(SHAPE, MASK, run[0]), text)


def _pem(found: re.Match[str]) -> str:
    """Between BEGIN and END all is key; without an END only what looks like it, as in a cut-off output."""
    begin, body = found.groups()
    if body.startswith(MASK) or not re.search(r"[A-Za-z0-9+/]{16}", body):
        return found[0]
    cut_off = None if found.string.startswith("-----END", found.end()) else PEM_CUT_OFF.match(body)
    return f"{begin}{MASK}{body[cut_off.end() :] if cut_off else ''}"


def _command(found: re.Match[str]) -> str:
    """A command's secrets by the rules of each program in it, as in `docker exec db mysql -p…`."""
    command = found[0]
    for name in reversed(list(re.finditer(PROGRAM, command))[:4]):
        arguments = command[name.end() :]
        for start, pattern in PROGRAMS[name[0]]:
            if re.match(start, arguments):
                arguments = re.sub(pattern, _place, arguments)
        command = command[: name.end()] + arguments
    return command


def _place(found: re.Match[str]) -> str:
    """The match with its `secret` group masked, quotes kept."""
    word, (start, end), at = found["secret"], found.span("secret"), found.start()
    quote = word[0] if word[0] in "\"'" and word[-1] == word[0] else ""
    if is_plain(word.strip(quote or None)):
        return found[0]
    return f"{found[0][: start - at]}{quote}{MASK}{quote}{found[0][end - at :]}"


def _user_pattern(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise ConfigError("masking.patterns", pattern, reason, "Write it in RE2 syntax.") from None


def _apply(pattern: Any, text: str) -> str:
    """A user's pattern, kept away from what is masked already and from lone surrogates (RE2 refuses them)."""

    def masked(found: Any) -> str:
        (start, end), at, whole = found.span(1 if found.re.groups else 0), found.start(), str(found.group())
        return f"{whole[: start - at]}{MASK if start < end else ''}{whole[end - at :]}"

    pieces = re.split(r"(\[masked\]|[\ud800-\udfff]+)", text)
    pieces[::2] = [pattern.sub(masked, piece) for piece in pieces[::2]]
    return "".join(pieces)
