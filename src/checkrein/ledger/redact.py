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
from checkrein.ledger.assignments import HEAD, last_gap, rest_of_word, value_span
from checkrein.ledger.call_secrets import NO_SECRETS, CallSecrets, secrets_between
from checkrein.ledger.hints import Hints, Seen, folds_apart
from checkrein.ledger.prefixes import COMMAND_KEYS, mask_assigned, mask_prefixes
from checkrein.ledger.secrets import (
    BARE_ENDS,
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
    PROGRAMS,
    RUN_BEGINS,
    SHAPE,
    SHAPE_HINTS,
    SHAPE_PAT,
    SHAPE_RUN,
    WORD_OF_COMMAND,
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
_LONG_NUMBER = 6
_PROGRAMS = frozenset(PROGRAMS)


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
        self._passes: tuple[tuple[tuple[str, ...], Callable[[Seen], str]], ...] = (
            *((always, partial(_apply, _user_pattern(pattern))) for pattern in masking.patterns),
            (SHAPE_HINTS, _shapes),
            (("private key",), lambda seen: re.sub(PEM, _pem, seen.text)),
            *((hints, partial(_places, pattern, starts)) for hints, starts, pattern in PLACES),
            (self._hints, self._assignments),
            (tuple(PROGRAMS), lambda seen: seen.replaced(COMMAND, _command, _PROGRAMS)),
            (always, _bare_shapes),
        )
        self._always = [number for number, (hints, _) in enumerate(self._passes) if "" in hints]
        self._turns: dict[str, list[int]] = {}
        for number, (hints, _) in enumerate(self._passes):
            for hint in hints:
                self._turns.setdefault(hint, []).append(number)
        self._words = Hints((*self._turns, *(word for _, starts, _ in PLACES for word in starts)))

    def value(self, value: Any) -> Any:
        """A deep copy with its secrets masked; what hangs under a secret name is masked whatever it is."""
        return self.find(value)[0]

    def find(self, value: Any) -> tuple[Any, CallSecrets]:
        """The same copy, and the secrets that were found. Each is masked in all of the copy."""
        found: list[str] = []
        copy = self._copy(value, "", MAX_DEPTH, found)
        if not found:
            return copy, NO_SECRETS
        secrets = CallSecrets(found)
        return secrets.value(copy), secrets

    def text(self, text: str) -> str:
        """Text, a command line or an output with its secrets masked."""
        return self._look(text)[0]

    def _look(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The masked text, and what was masked in it."""
        return self._short(text) if len(text) <= _SHORT else self._masked(text)

    def _masked(self, text: str) -> tuple[str, tuple[str, ...]]:
        seen, found = self._words.look(text), list[str]()
        held = self._words.held(text.lower()) if folds_apart(text) else seen.held
        wanted = self._always
        if held:
            wanted = sorted({*wanted, *(number for word in held for number in self._turns.get(word, ()))})
        for number in wanted:
            masked = self._passes[number][1](seen)
            if masked != seen.text:
                found += secrets_between(seen.text, masked)
                seen = self._words.look(masked)
        return seen.text, tuple(found)

    def _noted(self, text: str, found: list[str]) -> str:
        masked, secrets = self._look(text)
        if secrets:
            found += secrets
        return masked

    def _copy(self, value: Any, secret: str, depth: int, found: list[str]) -> Any:
        """`secret` is the secret name this value hangs under, or nothing."""
        if isinstance(value, str):
            if secret:
                value = _changed(value, masked_value(value, secret), found)
            masked, secrets = self._short(value) if len(value) <= _SHORT else self._masked(value)
            if secrets:
                found += secrets
            return masked
        if isinstance(value, (dict, list, tuple)):
            if depth == 0:
                return TOO_DEEP
            if isinstance(value, dict):
                return self._copy_dict(value, secret, depth - 1, found)
            copies = self._copy_list(value, secret, depth - 1, found)
            return tuple(copies) if isinstance(value, tuple) else copies
        if secret and value is not None and not isinstance(value, bool):
            # A number so long is no count of anything.
            found += (
                [str(value)] if isinstance(value, int | float) and len(str(value)) >= _LONG_NUMBER else []
            )
            return MASK
        return value

    def _copy_dict(self, value: dict[Any, Any], above: str, depth: int, found: list[str]) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                copy[key] = self._copy(item, above, depth, found)
                continue
            secret = key if self._is_secret(key) else above
            if above and secret is above and HARMLESS_INSIDE.fullmatch(key.lower()):
                secret = ""
            if not secret and key in ("value", "Value"):
                # `{"name": "DB_PASSWORD", "value": …}` names its secret next to it.
                labels = (value.get(label) for label in ("name", "Name", "key", "Key", "header"))
                secret = next((x for x in labels if isinstance(x, str) and self._is_secret(x)), "")
            masked = self._noted(key, found) if len(key) > 16 else key
            name = f"{masked} {len(copy)}" if masked in copy else masked
            given = _without_prefixes(item, found) if key in COMMAND_KEYS else item
            copy[name] = self._copy(given, secret, depth, found)
        return copy

    def _copy_list(
        self, value: list[Any] | tuple[Any, ...], above: str, depth: int, found: list[str]
    ) -> list[Any]:
        copies = [self._copy(item, above, depth, found) for item in value]
        for index, item in enumerate(value):
            if isinstance(item, str) and (copies[index] == item or "=" in item):
                copies[index] = self._argument(value, index, found)
        return copies

    def _argument(self, words: list[Any] | tuple[Any, ...], index: int, found: list[str]) -> str:
        """One word of a command line given as a list: whole, spaces and all, and with its flag before it."""
        word: str = words[index]
        name, sign, rest = word.partition("=")
        if sign and " " not in name and self._is_secret(name):
            return self._noted(f"{name}={_changed(rest, masked_value(rest, name), found)}", found)
        before = words[index - 1] if index else ""
        if isinstance(before, str) and "-" in (before[:1], word[:1]):
            lead = (each for each in words[: min(3, max(index - 1, 0))] if isinstance(each, str))
            start = " ".join([*lead, before, ""])
            quote = "'" if re.search(r"[\s\"'`|;&<>()$]", word) else ""
            line = start + quote + word.replace("'", "_") + quote
            masked = self.text(line)
            if masked != line and masked.startswith(start):
                masked = masked.removeprefix(start).strip("'")
                return _changed(word, masked, found)
        return self._noted(word, found)

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

    def _assignments(self, seen: Seen) -> str:
        """Names in the order they stand: within what one takes up, no other begins."""
        text, kept, at, ends = seen.text, 0, 0, 0
        pieces: list[str] = []
        for place in seen.places(self._hints):
            if place < max(at, ends):
                continue
            ends, named = rest_of_word(text, at, place)
            at = last_gap(text, at, place) if named else at
            # INVARIANT: `at` never goes back, or a text of many names would cost quadratic time.
            while named and at <= place:
                head = HEAD.search(text, at)
                if head is None or head.start() > place:
                    at = head.start() if head else len(text)
                    break
                at = head.end()
                if after := self._masked_after(head):
                    start, at, masked = after
                    pieces += (text[kept:start], masked)
                    kept = at
        return "".join([*pieces, text[kept:]])

    def _masked_after(self, head: re.Match[str]) -> tuple[int, int, str] | None:
        """From where to where a secret stands behind this name, and what it becomes."""
        name = head["flag"] or head["name"]
        words, strength = self._weight(name) if len(name) <= _SHORT else self._weighed(name)
        if strength and (where := value_span(head, words, strength)):
            value = head.string[slice(*where)]
            masked = masked_value(value, words)
            # A reference may hold secrets further in (`$(curl -H …)`): reading goes on inside it.
            if masked != value or MASK in value:
                return *where, masked
        return None


def _changed(value: str, masked: str, found: list[str]) -> str:
    """The masked value; what was masked in it is noted."""
    if masked != value:
        found += secrets_between(value, masked)
    return masked


def _without_prefixes(item: Any, found: list[str]) -> Any:
    """A command without the values it sets for its programs."""
    if isinstance(item, str):
        return _changed(item, mask_prefixes(item), found) if "=" in item else item
    if isinstance(item, list | tuple) and all(isinstance(each, str) for each in item):
        return [_changed(*pair, found) for pair in zip(item, mask_assigned([*item]), strict=True)]
    return item


def _shapes(seen: Seen) -> str:
    """Tokens that give themselves away; only what is long enough to be one is looked at closely."""
    text, kept, ends = seen.text, 0, 0
    pieces: list[str] = []
    if not seen.held.isdisjoint(HASH_HINTS):
        return re.sub(SHAPE, MASK, text)
    places = seen.places(hint for hint in SHAPE_HINTS if hint != "pat")
    if "pat" in seen.held:
        places = sorted([*places, *(pat.start() for pat in SHAPE_PAT.finditer(text))])
    for place in places:
        if place >= ends and (begins := RUN_BEGINS.match(text, ends, place)):
            run = SHAPE_RUN.match(text, begins.end())
            ends = run.end() if run else place + 1
            if run:
                pieces += (text[kept : run.start()], re.sub(SHAPE, MASK, run[0]))
                kept = ends
    return "".join([*pieces, text[kept:]])


def _places(pattern: str, starts: Sequence[str], seen: Seen) -> str:
    return seen.replaced(pattern, _place, starts)


def _bare_shapes(seen: Seen) -> str:
    text = seen.text
    if BARE_ENDS[0].search(text) or BARE_ENDS[1].search(text):
        return BARE_SHAPE.sub(MASK, text)
    return text


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
    programs = [word for word in WORD_OF_COMMAND.finditer(command) if word[0] in PROGRAMS]
    for name in reversed(programs[:4]):
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


def _apply(pattern: Any, seen: Seen) -> str:
    """A user's pattern, kept away from what is masked already and from lone surrogates (RE2 refuses them)."""

    def masked(found: Any) -> str:
        (start, end), at, whole = found.span(1 if found.re.groups else 0), found.start(), str(found.group())
        return f"{whole[: start - at]}{MASK if start < end else ''}{whole[end - at :]}"

    pieces = re.split(r"(\[masked\]|[\ud800-\udfff]+)", seen.text)
    pieces[::2] = [pattern.sub(masked, piece) for piece in pieces[::2]]
    return "".join(pieces)
