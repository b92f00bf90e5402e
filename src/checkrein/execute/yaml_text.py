"""YAML for scripts: text to JSON data and back, on the host's side of the sandbox.

Called by the engines for `yaml.parse` and `yaml.stringify`. Reads YAML 1.2's plain words (`no` is text),
builds nothing but JSON's types, and refuses aliases, depth and size before anything is built.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

from checkrein.execute.sandbox import DEEPEST_VALUE

LARGEST_TEXT = 256 << 10
_MOST_EVENTS = 50_000

_WORDS: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
)


class YamlError(ValueError):
    """Raise when text is no YAML that may be read."""


def parse(text: str) -> Any:
    """The document as JSON data."""
    yaml = _yaml()
    if len(text) > LARGEST_TEXT:
        raise YamlError(f"the text is longer than {LARGEST_TEXT} characters")
    try:
        _inspect(text)
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())[:300]) from None
    except (ValueError, RecursionError, TypeError) as error:
        raise YamlError(str(error)[:300] or "it cannot be read") from None


def stringify(value: Any) -> str:
    """JSON data as a document in block style, keys in their order."""
    yaml = _yaml()
    made: str = yaml.dump(
        value, Dumper=_dumper(), allow_unicode=True, sort_keys=False, default_flow_style=False
    )
    return made.removesuffix("...\n")


def _inspect(text: str) -> None:
    """INVARIANT: aliases, tags and depth are refused from the token stream, before anything is composed."""
    yaml = _yaml()
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_parser())):
        if count > _MOST_EVENTS:
            raise YamlError(f"it has more than {_MOST_EVENTS} parts")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors and aliases are not read")
        if getattr(event, "tag", None) not in (None, "!"):
            raise YamlError(f"the tag {str(event.tag)[:60]} is not read")
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise YamlError("it holds more than one document")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_VALUE:
            raise YamlError(f"it is nested deeper than {DEEPEST_VALUE} levels")


@functools.cache
def _yaml() -> Any:
    return importlib.import_module("yaml")


def _parser() -> Any:
    yaml = _yaml()
    return yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@functools.cache
def _loader() -> Any:
    yaml = _yaml()

    class Loader(_parser()):  # type: ignore[misc]
        """JSON's types only."""

    Loader.yaml_implicit_resolvers = {}
    _add_words(Loader)
    Loader.yaml_constructors = {}
    base = yaml.constructor.SafeConstructor
    Loader.add_constructor("tag:yaml.org,2002:null", base.construct_yaml_null)
    Loader.add_constructor("tag:yaml.org,2002:str", base.construct_yaml_str)
    Loader.add_constructor("tag:yaml.org,2002:bool", base.construct_yaml_bool)
    Loader.add_constructor("tag:yaml.org,2002:int", _whole)
    Loader.add_constructor("tag:yaml.org,2002:float", base.construct_yaml_float)
    Loader.add_constructor(
        "tag:yaml.org,2002:seq", lambda loader, node: loader.construct_sequence(node, deep=True)
    )
    Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
    return Loader


def _whole(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    if len(text) > 400:
        raise YamlError("a number is too long")
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:], base) if base != 10 else int(text)


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.id != "scalar":
            raise YamlError("a key is not a word")
        key = key_node.value
        if key in made:
            raise YamlError(f"the key {key[:60]!r} is there twice")
        made[key] = loader.construct_object(value_node, deep=True)
    return made


@functools.cache
def _dumper() -> Any:
    yaml = _yaml()

    class Dumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
        """No aliases: JSON data has none."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    # Text that our reader or an older one would take for something else is quoted.
    _add_words(Dumper)
    return Dumper


def _add_words(kind: Any) -> None:
    for word, pattern, first in _WORDS:
        letters = [*first, ""] if word == "null" else list(first)
        kind.add_implicit_resolver(f"tag:yaml.org,2002:{word}", re.compile(f"^(?:{pattern})$"), letters)
