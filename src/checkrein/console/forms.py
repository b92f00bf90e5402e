"""What a browser sends: fields of a form or an address, however wrong, as text."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from checkrein.errors import InputError

_MOST_FIELDS = 2_000


class Fields(msgspec.Struct, frozen=True):
    """Names and their values, in order."""

    values: dict[str, list[str]] = {}

    def text(self, name: str, default: str = "") -> str:
        """The last value given, without space around it."""
        return self.values[name][-1].strip() if self.values.get(name) else default

    def all(self, name: str) -> list[str]:
        return list(self.values.get(name, ()))

    def number(self, name: str) -> int | None:
        """A whole number; None where nothing is given."""
        text = self.text(name)
        if not text:
            return None
        if not text.removeprefix("-").isdecimal() or len(text) > 15:
            raise InputError(f"`{name}` must be a whole number, not {text[:40]!r}.")
        return int(text)

    def json(self, name: str) -> Any:
        """What was written as JSON; None where nothing is given."""
        text = self.text(name)
        if not text:
            return None
        try:
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InputError(f"`{name}` is not JSON: {error}.") from None


def fields(encoded: bytes) -> Fields:
    """From `application/x-www-form-urlencoded`."""
    try:
        pairs = parse_qsl(
            encoded.decode("ascii", "replace"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise InputError("These are too many fields.") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        # A browser ends the lines of a text area with both characters.
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Fields(found)
