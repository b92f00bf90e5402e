"""What a Python script finds ready: `codemode`, `call_tool`, `yaml`, and stubs for its type check.

Called by the Python engine. Names become calls only here: one that stands for no tool and no helper
is undefined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from checkrein.execute import yaml_text
from checkrein.execute.python_graph import Function, Module
from checkrein.execute.python_values import NotPlainError, arguments, plain
from checkrein.execute.python_words import Called, System, answer, unhandled
from checkrein.execute.sandbox import Tool, Wanted

PRELUDE = "import asyncio, json, codemode, yaml"
_PARSE, _STRINGIFY = "yaml.parse", "yaml.stringify"
# What scripts call them, in either dialect and in PyYAML's own words.
_HELPERS = {
    "yaml.parse": _PARSE,
    "yaml.safe_load": _PARSE,
    "yaml.stringify": _STRINGIFY,
    "yaml.safe_dump": _STRINGIFY,
    "yaml.dump": _STRINGIFY,
    "yaml_parse": _PARSE,
    "yaml_stringify": _STRINGIFY,
    "utils__yaml__parse": _PARSE,
    "utils__yaml__stringify": _STRINGIFY,
}
_HELPER_STUBS = """
from typing import Any
async def call_tool(name: str, arguments: dict[str, Any] = ..., **named: Any) -> Any: ...
def yaml_parse(text: str) -> Any: ...
def yaml_stringify(value: Any) -> str: ...
"""
_YAML_STUBS = """
from typing import Any
def parse(text: str) -> Any: ...
def safe_load(text: str) -> Any: ...
def stringify(value: Any) -> str: ...
def safe_dump(value: Any, **options: Any) -> str: ...
def dump(value: Any, **options: Any) -> str: ...
"""


class Asked(msgspec.Struct, frozen=True):
    """A call to a tool, its arguments copied."""

    tool: str
    arguments: dict[str, Any]


class Names:
    """The names a script may use, and what stands behind each."""

    def __init__(self, tools: Sequence[Tool], stubs: str) -> None:
        self._tools = frozenset(tool.name for tool in tools)
        self._stubs = stubs

    def same(self, other: Names) -> bool:
        """Whether a script finds exactly the same there."""
        return self is other or (self._tools, self._stubs) == (other._tools, other._stubs)

    @property
    def check_stubs(self) -> str:
        return self._stubs + _HELPER_STUBS

    @cached_property
    def _modules(self) -> dict[str, Module]:
        inside = {*self._tools, "call_tool", "yaml_parse", "yaml_stringify"}
        inside |= {"utils__yaml__parse", "utils__yaml__stringify"}
        yaml = [name.removeprefix("yaml.") for name in _HELPERS if name.startswith("yaml.")]
        return {"codemode": _module("codemode", sorted(inside)), "yaml": _module("yaml", yaml)}

    def served(self, wanted: System) -> bytes:
        """Our modules, where a script imports them or is checked; there is nothing else to import."""
        if wanted.what == "import_stubs":
            stubs = {"codemode": self.check_stubs, "yaml": _YAML_STUBS}
            return answer(
                wanted.number, {"return_value": {n: stubs[n] for n in wanted.modules if n in stubs}}
            )
        known = [self._modules[name] for name in wanted.modules if name in self._modules]
        if wanted.what != "import" or not known:
            return unhandled(wanted.number)
        return answer(wanted.number, {"return_value": known[0]})

    def value(self, name: str) -> Function | None:
        """What a bare name stands for, when it is read and not called."""
        known = name in self._tools or name in _HELPERS or name == "call_tool"
        return Function(name) if known else None

    def asked(self, name: str, positional: Sequence[Any], named: dict[str, Any]) -> Asked | None:
        """The tool call a script's call is; None when it is none. Raises NotPlainError."""
        name = name.removeprefix("codemode.")
        if name == "call_tool" and name not in self._tools:
            if not positional or type(positional[0]) is not str:
                raise NotPlainError("call_tool() takes a tool's name and a dict of its arguments")
            name, positional = positional[0].removeprefix("codemode."), positional[1:]
            if name not in self._tools:
                raise NotPlainError(f"there is no tool {name[:100]!r}")
        # INVARIANT: only a name in the list we were given becomes a call.
        return Asked(name, arguments(name, positional, named)) if name in self._tools else None

    def is_call(self, at: Called, wanted: Wanted | None) -> bool:
        """Whether the script stands at this call; at any, where it is not known any more."""
        try:
            asked = self.asked(at.name, at.positional, at.named)
        except NotPlainError:
            return False
        return wanted is None or asked == Asked(wanted.name, wanted.arguments)

    def helper(self, name: str) -> str:
        """Which of our own functions a name means, or nothing."""
        return _HELPERS.get(name.removeprefix("codemode."), "")


def _module(name: str, inside: Iterable[str]) -> Module:
    # INVARIANT: a function is called what it is: calls report this name, not the one the script gave it.
    functions = {each: Function(f"{name}.{each}") for each in inside}
    return Module(name, hashlib.sha256(name.encode()).digest()[:16], functions)


def help_out(helper: str, positional: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The answer of one of our own functions, in the sandbox's words."""
    try:
        given = _single(positional, named)
        if helper == _PARSE:
            if not isinstance(given, str):
                raise NotPlainError("yaml.parse() takes text")
            return {"return_value": plain(yaml_text.parse(given))}
        return {"return_value": yaml_text.stringify(plain(given))}
    except yaml_text.YamlError as error:
        return {"exc_type": "ValueError", "message": f"yaml: {error}"}
    except NotPlainError as error:
        return {"exc_type": "TypeError", "message": str(error)}


def _single(positional: Sequence[Any], named: dict[str, Any]) -> Any:
    given = [*positional, *named.values()] if not positional else [positional[0]]
    if not given:
        raise NotPlainError("it takes one argument")
    # The older bridge passed `{"text": ...}` or `{"value": ...}` to these.
    if type(given[0]) is dict and len(given[0]) == 1 and isinstance(given[0].get("text"), str):
        return given[0]["text"]
    return given[0]
