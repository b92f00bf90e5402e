"""What each model can take in and give out, and how its tokens are counted: a table users extend and edit.

Counting, compression and the console ask it. An unknown model is never taken for a known one in silence.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.chat.tokens import Encoding, named
from checkrein.errors import CheckreinError, ConfigError, InputError
from checkrein.settings.reading import read
from checkrein.settings.sources import config_dir, parse

LARGEST = 100_000_000
_SHIPPED = Path(__file__).with_name("models.toml")
_KEYS = ("input", "output", "encoding", "approximate", "aliases", "threshold", "retention_tokens")
# What may follow a known name: a date, a version, a tag. A dot begins another version instead.
_ENDS = "-@:"
_SAME_MODEL = re.compile(
    r"(?:[-@:](?:\d{4}-?\d{2}-?\d{2}|\d{2}-\d{2,4}|\d{3,4}|v\d+|\d+b|latest|preview|exp|instruct)|:\d+)*"
)
_PROVIDER = re.compile(r"[a-z][a-z-]*:")
_MAKERS = re.compile(r"(?:[a-z]{2,4}\.)?(?:anthropic|meta|mistral|deepseek|qwen|openai)\.")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A model in the table. `threshold` and `retention_tokens` are set by users only."""

    input: int
    output: int
    encoding: Encoding = "o200k"
    approximate: bool = False
    aliases: tuple[str, ...] = ()
    threshold: float | None = None
    retention_tokens: int | None = None


# For a model nobody told us of: what most of today's can take, and a short answer.
ASSUMED = Entry(input=128_000, output=4_096, approximate=True)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it was asked for, with its limits. `note` is empty only when there is nothing to tell."""

    name: str
    known_as: str
    input: int
    output: int
    encoding: Encoding
    approximate: bool
    threshold: float | None = None
    retention_tokens: int | None = None
    note: str = ""

    @property
    def known(self) -> bool:
        return bool(self.known_as)


class Table(msgspec.Struct, frozen=True):
    """Entries by name and alias; `fault` says why the user's own file is left out."""

    entries: dict[str, Entry] = {}
    fault: str = ""

    def model(self, name: str) -> Model:
        """The limits of a model by its name, an alias, or the longest known name it begins with."""
        for candidate in _candidates(name):
            known = _longest(candidate, self.entries)
            if known:
                rest = candidate[len(known) :]
                note = "" if _SAME_MODEL.fullmatch(rest) else _assumed_like(name, known)
                return _model(name, known, self.entries[known], note)
        return _model(name, "", ASSUMED, _unknown(name))


def models_file() -> Path:
    return config_dir() / "models.toml"


def load() -> Table:
    """The shipped table with the user's file over it. Never raises: a bad file is a fault, and left out."""
    try:
        content = read(models_file())
        document = {} if content is None else parse(content, str(models_file()))
        own = parsed(document, str(models_file()), shipped())
    except CheckreinError as error:
        return Table(shipped(), fault=str(error))
    return Table({**shipped(), **own})


@cache
def shipped() -> dict[str, Entry]:
    return parsed(tomllib.loads(_SHIPPED.read_text(encoding="utf-8")), _SHIPPED.name)


def parsed(
    document: Mapping[str, Any], source: str, known: Mapping[str, Entry] | None = None
) -> dict[str, Entry]:
    """The entries of such a file, by every name they go by; raises ConfigError where one cannot be right.

    A row for a known model need only say what is different.
    """
    found: dict[str, Entry] = {}
    for key in document:
        if key != "models":
            raise ConfigError(
                key, None, "is not part of a table of models", _like(key, ["models"]), source=source
            )
    rows = document.get("models", {})
    if not isinstance(rows, Mapping):
        raise ConfigError("models", rows, "must be a table", 'Example: [models."my-model"]', source=source)
    for name, row in rows.items():
        entry = _entry(f'models."{name}"', row, source, (known or {}).get(_folded(name)))
        # A row's own name wins over another row's alias, wherever in the file they stand.
        found.update(
            {_folded(each): entry for each in entry.aliases if _folded(each) not in map(_folded, rows)}
        )
        found[_folded(name)] = entry
    return found


def rendered(entries: Mapping[str, Entry]) -> str:
    """Entries as the text of such a file, for a console that edits them."""
    lines: list[str] = []
    for name, entry in entries.items():
        lines.append(f"[models.{_quoted(name)}]")
        lines += [f"input = {entry.input}", f"output = {entry.output}", f'encoding = "{entry.encoding}"']
        lines += ["approximate = true"] if entry.approximate else []
        lines += [f"aliases = [{', '.join(map(_quoted, entry.aliases))}]"] if entry.aliases else []
        lines += [f"threshold = {entry.threshold}"] if entry.threshold is not None else []
        kept = entry.retention_tokens
        lines += [f"retention_tokens = {kept}"] if kept is not None else []
        lines.append("")
    return "\n".join(lines)


def _entry(key: str, given: Any, source: str, known: Entry | None) -> Entry:
    if not isinstance(given, Mapping):
        raise ConfigError(key, given, "must be a table", "Example: input = 128000", source=source)
    row = {**(_told(known) if known else {}), **given}
    for name in row:
        if name not in _KEYS:
            raise ConfigError(f"{key}.{name}", None, "is not known", _like(name, _KEYS), source=source)
    for name in ("input", "output"):
        _whole(f"{key}.{name}", row.get(name), 1, source)
    if "threshold" in row:
        _share(f"{key}.threshold", row["threshold"], source)
    if "retention_tokens" in row:
        _whole(f"{key}.retention_tokens", row["retention_tokens"], 0, source)
    try:
        return msgspec.convert({**row, "encoding": named(str(row.get("encoding", "o200k")))}, Entry)
    except (InputError, msgspec.ValidationError) as error:
        raise ConfigError(key, None, str(error), "See docs/chat.md, Models.", source=source) from error


def _told(known: Entry) -> dict[str, Any]:
    told = msgspec.structs.asdict(known)
    return {name: value for name, value in told.items() if name != "aliases" and value is not None}


def _whole(key: str, value: Any, least: int, source: str) -> None:
    if type(value) is not int or not least <= value <= LARGEST:
        raise ConfigError(
            key, value, "must be a whole number", f"From {least} to {LARGEST:,}.", source=source
        )


def _share(key: str, value: Any, source: str) -> None:
    if type(value) not in (int, float) or not 0.7 <= value <= 1:
        raise ConfigError(
            key, value, "is out of bounds", "From 0.7 to 1.0: 70 to 100 percent.", source=source
        )


def _candidates(name: str) -> Iterable[str]:
    """A name and what is left of it without the provider some put before it."""
    folded = _folded(name)
    yield folded
    short = folded.rsplit("/", 1)[-1]
    yield short
    yield _PROVIDER.sub("", short, count=1)
    yield _MAKERS.sub("", short, count=1)


def _longest(name: str, entries: Mapping[str, Entry]) -> str:
    for end in range(len(name), 0, -1):
        if (end == len(name) or name[end] in _ENDS) and name[:end] in entries:
            return name[:end]
    return ""


def _folded(name: str) -> str:
    return re.sub(r"\s+", "-", name.strip()[:200].casefold())


def _model(name: str, known: str, entry: Entry, note: str) -> Model:
    return Model(
        name=name,
        known_as=known,
        input=entry.input,
        output=entry.output,
        encoding=entry.encoding,
        approximate=entry.approximate,
        threshold=entry.threshold,
        retention_tokens=entry.retention_tokens,
        note=note,
    )


def _unknown(name: str) -> str:
    return (
        f"`{name[:80]}` is not in the table of models: {ASSUMED.input:,} tokens in and {ASSUMED.output:,} "
        f"out are assumed. Its limits can be told in {models_file().name}."
    )


def _assumed_like(name: str, known: str) -> str:
    return f"`{name[:80]}` is not in the table of models: the limits of `{known}` are assumed."


def _like(typed: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(typed), list(known), n=1)
    return f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(known)}."


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return msgspec.json.encode(text).decode("utf-8").replace("\x7f", "\\u007f")
