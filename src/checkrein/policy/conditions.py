"""Argument conditions of a rule: `path` into the arguments, one or more tests, true, false or cannot tell.

"Cannot tell" (missing argument, wrong type, unreadable URL) is a third answer on purpose: the rule that
asked decides what it means, so that a deny never lapses because the agent left an argument out.
"""

from __future__ import annotations

import functools
import ipaddress
import math
import os.path  # paths are compared as text here: pathlib would hide what the agent wrote
import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from checkrein.call import ToolCall
from checkrein.errors import RuleError

Resolve = Callable[[str], str]
Answer = Literal["yes", "no", "unknown"]
_MISSING = object()
_STEP = re.compile(r'\.?([^.\[\]"]+)|\[([0-9]{1,9}|\*)\]|\["((?:[^"\\]|\\.)*)"\]')
_ROOT = re.compile(r"\$(?=[.\[]|$)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_URL = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
# `http:/evil` and `http:evil` are URLs to many readers; only a port may follow the colon of a bare host.
_NO_BARE_HOST = re.compile(r"[a-z][a-z0-9+.-]*:(?![0-9]{1,5}(?:[/?#]|$))", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


class Cannot(Exception):  # noqa: N818 - an answer, not a fault
    """A test that cannot be answered, and why."""


class Condition(msgspec.Struct, frozen=True):
    """One path into the arguments and the tests its value must pass."""

    path: str
    steps: tuple[str | int, ...]
    tests: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """The condition as a person reads it."""
        return " and ".join(f"{self.path} {name} {_short(wanted)}" for name, wanted in self.tests)


class Context(msgspec.Struct, frozen=True):
    """What path tests need to know of the call."""

    call: ToolCall
    resolve: Resolve | None = None


def conditions(when: Any) -> tuple[Condition, ...]:
    """Conditions as a person may write them: a list, one table, or tables keyed by path."""
    if when is None:
        return ()
    if isinstance(when, Mapping):
        if isinstance(when.get("path"), str):
            when = [when]
        else:
            when = [{"path": path, **_tests_table(path, tests)} for path, tests in when.items()]
    if not isinstance(when, list | tuple):
        raise RuleError("`when` must be a list of conditions.", remedy=_EXAMPLE)
    return tuple(_condition(item) for item in when)


_EXAMPLE = 'Example: when = [{ path = "command", starts_with = "git " }].'


def _tests_table(path: Any, tests: Any) -> Mapping[str, Any]:
    if not isinstance(tests, Mapping):
        raise RuleError(f"`when`: `{path}` needs a test such as equals.", remedy=_EXAMPLE)
    return tests


def _condition(raw: Any) -> Condition:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("path"), str):
        raise RuleError("A condition needs a `path` into the arguments.", remedy=_EXAMPLE)
    tests = {key: value for key, value in raw.items() if key != "path"}
    if set(tests) == {"op", "value"}:
        tests = {str(tests["op"]): tests["value"]}
    if not tests:
        raise RuleError(f"The condition on `{raw['path']}` tests nothing.", remedy=_EXAMPLE)
    for name, wanted in tests.items():
        if name not in TESTS:
            raise RuleError(f"`{name}` is not a test.", remedy=f"Known: {', '.join(TESTS)}.")
        if not OPERAND[name](wanted):
            raise RuleError(
                f"`{name}` cannot use {_short(wanted)}.", remedy=f"{name} takes {OPERAND_WORDS[name]}."
            )
    return Condition(raw["path"], parse_path(raw["path"]), tuple(tests.items()))


def parse_path(path: str) -> tuple[str | int, ...]:
    """`a.b[0]`, `$.a["odd key"]`, `items[*].id` or the JSON pointer `/a/b` as steps."""
    if path.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
        return tuple(int(part) if _INDEX.fullmatch(part) else part for part in parts)
    text = _ROOT.sub("", path, count=1) if path.startswith("$") else path
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise RuleError(f"`{path}` is not a path.", remedy="Write it like a.b[0] or /a/b.")
        plain, index, quoted = match.groups()
        if index is not None:
            steps.append("*" if index == "*" else int(index))
        else:
            steps.append(plain if plain is not None else quoted.replace('\\"', '"').replace("\\\\", "\\"))
        position = match.end()
    if not steps:
        raise RuleError(f"`{path}` names no argument.", remedy="Write it like command or options.path.")
    return tuple(steps)


def holds(condition: Condition, context: Context, *, every: bool) -> tuple[Answer, str]:
    """The condition's answer and, unless it is yes, why. Over `[*]`, `every` asks all elements, else any."""
    values = list(_values(context.call.arguments, condition.steps))
    answers = [_answer(condition, value, context) for value in values]
    if not answers:
        return "unknown", f"`{condition.path}` is empty"
    wanted = _LEAST if every else _MOST
    return min(answers, key=lambda answer: wanted.index(answer[0]))


_LEAST = ("no", "unknown", "yes")
_MOST = ("yes", "unknown", "no")


def _answer(condition: Condition, value: Any, context: Context) -> tuple[Answer, str]:
    """All tests must hold; one plain no outweighs what cannot be told."""
    unknown = ""
    for name, wanted in condition.tests:
        try:
            if name != "exists" and value is _MISSING:
                raise Cannot("is missing")
            if not TESTS[name](value, wanted, context):
                return "no", f"`{condition.path}` fails {name} {_short(wanted)}"
        except Cannot as reason:
            unknown = f"`{condition.path}` {reason}"
        except (ValueError, TypeError, OverflowError, RecursionError, ImportError) as error:
            unknown = f"`{condition.path}` cannot be tested ({error})"
    return ("unknown", unknown) if unknown else ("yes", "")


def _values(value: Any, steps: tuple[str | int, ...]) -> list[Any]:
    found = [value]
    for step in steps:
        if step == "*":
            found = [
                item for each in found for item in (each if isinstance(each, list | tuple) else [_MISSING])
            ]
        else:
            found = [_step(each, step) for each in found]
    return found


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(str(step), _MISSING)
    if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
        return value[step]
    return _MISSING


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1, 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Cannot("is not text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise Cannot("is not a number")
    return value


def _contains(value: Any, wanted: Any, _: Context) -> bool:
    if isinstance(value, list | tuple):
        return any(_same(item, wanted) for item in value)
    if not isinstance(wanted, str):
        raise Cannot("is not a list")
    return wanted in _text(value)


@functools.lru_cache(maxsize=1024)
def regex(text: str) -> Any:
    """A compiled RE2 pattern: linear time whatever the agent sends."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def _under(value: Any, wanted: Any, context: Context) -> bool:
    call = context.call
    path = _text(value)
    if _URL.match(path):
        raise Cannot("is a URL, not a path")
    folders = [wanted] if isinstance(wanted, str) else wanted
    places = {_canonical(path, call.cwd or call.project, context.resolve)}
    if context.resolve and ".." in path.split("/"):
        # A shell goes through the link and then up, other tools drop `link/..` first.
        places.add(_canonical(path, call.cwd or call.project, context.resolve, shorten=False))
    answers = {any(_inside(place, folder, context) for folder in folders) for place in places}
    if len(answers) > 1:
        raise Cannot("means two places: it goes through a link and back")
    return answers.pop()


def _inside(target: str, folder: str, context: Context) -> bool:
    call = context.call
    root = call.project or call.cwd
    base = _canonical(folder, root, context.resolve)
    if os.path.isabs(target) != os.path.isabs(base):
        raise Cannot("cannot be placed: the project is not known")
    if not _below(target, base):
        return False
    if context.resolve and _leads_out(folder, base, root, context.resolve):
        raise Cannot("is under a link that leads out of the project")
    return True


def _leads_out(folder: str, base: str, root: str, resolve: Resolve) -> bool:
    """The agent can write the project: a folder swapped for a link is not what the rule meant."""
    named_inside = _below(_canonical(folder, root, None), _canonical(root, "", None))
    return named_inside and not _below(base, _canonical(root, "", resolve))


def _below(target: str, base: str) -> bool:
    if target == ".." or target.startswith("../"):
        return False
    return base == "." or target == base or target.startswith(base.rstrip("/") + "/")


def _canonical(path: str, base: str, resolve: Resolve | None, *, shorten: bool = True) -> str:
    if "\0" in path:
        raise Cannot("holds a NUL")
    if path.startswith("~"):
        path = os.path.expanduser(path)
        if path.startswith("~"):
            raise Cannot("names an unknown home")
    joined = os.path.join(base, path)
    joined = os.path.normpath(joined) if shorten else joined
    # normpath keeps a leading "//", which names the same root on our systems.
    joined = "/" + joined.lstrip("/") if joined.startswith("//") else joined
    return resolve(joined) if resolve and os.path.isabs(joined) else joined


def host_of(text: str) -> str:
    """The host a URL or bare `host[:port]` names, or Cannot where two readers could disagree."""
    if any(ord(char) <= 32 or char == "\\" or ord(char) > 126 for char in text):
        raise Cannot("is not a plain URL")
    if "://" not in text and _NO_BARE_HOST.match(text):
        raise Cannot("is not a plain URL")
    return _host(urlsplit(text if "://" in text else f"//{text}").hostname or "")


def _host(name: str) -> str:
    """A host in its one spelling; a number that only some readers take for an address is not plain."""
    host = name.lower().rstrip(".")
    last = host.rpartition(".")[2]
    try:
        if ":" in host or last.isdigit() or last.startswith("0x"):
            address = ipaddress.ip_address(host)
            return str(getattr(address, "ipv4_mapped", None) or address)
    except ValueError:
        raise Cannot("names no plain address") from None
    if not _HOST.fullmatch(host):
        raise Cannot("names no host")
    return host


def _host_in(value: Any, wanted: Any, _: Context) -> bool:
    host = host_of(_text(value))
    for allowed in [wanted] if isinstance(wanted, str) else wanted:
        name = _host(allowed.removeprefix("*.").strip("[]"))
        if host.endswith(f".{name}") if allowed.startswith("*.") else host == name:
            return True
    return False


TESTS: Mapping[str, Callable[[Any, Any, Context], bool]] = {
    "equals": lambda value, wanted, _: _same(value, wanted),
    "one_of": lambda value, wanted, _: any(_same(value, item) for item in wanted),
    "starts_with": lambda value, wanted, _: _text(value).startswith(wanted),
    "contains": _contains,
    "matches": lambda value, wanted, _: regex(wanted).search(_text(value)) is not None,
    "under": _under,
    "host_in": _host_in,
    "gt": lambda value, wanted, _: _number(value) > wanted,
    "lt": lambda value, wanted, _: _number(value) < wanted,
    "exists": lambda value, wanted, _: (value is not _MISSING) == wanted,
}


def _is_regex(value: Any) -> bool:
    try:
        return isinstance(value, str) and regex(value) is not None
    except Exception:  # noqa: BLE001 - the binding's own error class is not public
        return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value)))


def _is_hosts(value: Any) -> bool:
    """A URL, a port or a lone `*` would match no host, and a deny would never speak."""
    try:
        hosts = [value] if isinstance(value, str) else value
        return _is_texts(value) and all(_host(each.removeprefix("*.").strip("[]")) for each in hosts)
    except Cannot:
        return False


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _is_json(value: Any, levels: int = 32) -> bool:
    """What an argument can be equal to; a TOML date or NaN would match nothing."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return levels > 0 and all(_is_json(item, levels - 1) for item in value)
    return value is None or isinstance(value, str | bool) or _is_number(value)


OPERAND: Mapping[str, Callable[[Any], bool]] = {
    "equals": _is_json,
    "one_of": lambda value: isinstance(value, list | tuple) and bool(value) and _is_json(value),
    "starts_with": _is_text,
    "contains": lambda value: value != "" and _is_json(value),
    "matches": _is_regex,
    "under": _is_texts,
    "host_in": _is_hosts,
    "gt": _is_number,
    "lt": _is_number,
    "exists": lambda value: isinstance(value, bool),
}
OPERAND_WORDS: Mapping[str, str] = {
    "equals": "any JSON value",
    "one_of": "a list of values",
    "starts_with": "a text",
    "contains": "a text, or a value to look for in a list",
    "matches": "an RE2 regular expression (no backreferences or look-around)",
    "under": "a folder or a list of folders",
    "host_in": 'a host or a list of hosts ("*.example.com" for every subdomain)',
    "gt": "a number",
    "lt": "a number",
    "exists": "true or false",
}


def _short(value: Any) -> str:
    text = reprlib.repr(value)  # a value nested too deeply for repr() is still a value
    return text if len(text) <= 40 else f"{text[:37]}..."
