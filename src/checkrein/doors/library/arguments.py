"""A Python call's arguments as the names and plain values that are judged, and back again. No I/O."""

from __future__ import annotations

import inspect
import math
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from checkrein.call import DEEPEST
from checkrein.errors import InputError

_PLAIN = frozenset({str, int, bool, type(None)})
_HOLDING = frozenset({dict, list, tuple})
_LONGEST_REPR = 1_000
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Shape:
    """How a function is called. `hidden` parameters are the program's own and no part of the call."""

    def __init__(self, function: Callable[..., Any], hidden: Sequence[str] = ()) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        self._hidden = frozenset(hidden)
        parameters = self._signature.parameters
        self._rest = next((n for n, p in parameters.items() if p.kind is p.VAR_KEYWORD), "")
        unknown = self._hidden - set(parameters)
        if unknown:
            raise InputError(f"The tool has no parameter {', '.join(sorted(unknown))}.")

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Every argument by name, defaults too; a call that does not fit raises what Python raises."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found = {name: value for name, value in bound.arguments.items() if name not in self._hidden}
        if self._rest and self._rest in found:
            more = found.pop(self._rest)
            # INVARIANT: no argument is judged in the place of another of the same name.
            if more.keys() & found.keys():
                raise InputError(f"An argument is named twice: {', '.join(more.keys() & found.keys())}.")
            found.update(more)
        return found

    def call(
        self,
        arguments: Mapping[str, Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        same: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How to call the function with these; what is hidden stays as it was given, and so does `same`."""
        same = same or {}
        before = self._signature.bind_partial(*args, **(kwargs or {})).arguments
        kinds, parameters = self._kinds(), self._signature.parameters
        left, first, named = dict(arguments), list[Any](), dict[str, Any]()
        for name, parameter in parameters.items():
            if name in self._hidden:
                if name not in before:
                    continue
                value = before[name]
            elif parameter.kind is parameter.VAR_KEYWORD or name not in left:
                continue
            else:
                given = left.pop(name)
                kind = kinds.get(name, Any)
                value = same[name] if name in same else converted(given, kind, name, several=parameter.kind)
            if parameter.kind is parameter.VAR_POSITIONAL:
                first.extend(value)
            elif parameter.kind is parameter.POSITIONAL_ONLY or (first and parameter.kind is _EITHER):
                first.append(value)
            else:
                named[name] = value
        if left and not self._rest:
            raise InputError(f"The tool has no parameter {', '.join(sorted(left))}.")
        named.update({name: same.get(name, value) for name, value in left.items()})
        try:
            self._signature.bind(*first, **named)
        except TypeError as error:
            raise InputError(f"The tool cannot be called with these arguments: {error}.") from None
        return tuple(first), named

    def _kinds(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self._function)
        except (NameError, TypeError, AttributeError):
            return {}


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def converted(value: Any, kind: Any, name: str, *, several: Any = None) -> Any:
    """A plain value as the type a parameter says, or InputError where it does not fit."""
    if kind is Any or kind is inspect.Parameter.empty:
        return value
    wanted = list[kind] if several is inspect.Parameter.VAR_POSITIONAL else kind
    try:
        return msgspec.convert(value, wanted, dec_hook=_made)
    except msgspec.ValidationError as error:
        raise InputError(f"`{name}` does not fit: {error}.") from None
    except TypeError:
        # A type msgspec knows nothing about: the tool checks for itself.
        return value
    except ValueError as error:
        raise InputError(f"`{name}` does not fit: {error}.") from None


def _made(kind: type, value: Any) -> Any:
    """A type msgspec does not know itself, also inside others: models and paths."""
    validate = getattr(kind, "model_validate", None)
    if validate is not None and isinstance(value, dict):
        return validate(value)
    is_path = issubclass(kind, os.PathLike) and isinstance(value, str)
    return kind(value) if is_path else value


class _Words:
    """A value in the words of JSON. What JSON cannot hold is described, and named in `opaque`."""

    def __init__(self, opaque: list[str], describe: Callable[[Any], str]) -> None:
        self._opaque, self._describe = opaque, describe
        # The values that what is looked at lies in.
        self._around: list[int] = []
        self.too_deep = False

    def of(self, value: Any, path: str = "") -> Any:
        kind = type(value)
        if kind in _PLAIN or (kind is float and math.isfinite(value)):
            return value
        if kind in _HOLDING or isinstance(value, set | frozenset):
            if len(self._around) >= DEEPEST or id(value) in self._around:
                # INVARIANT: what holds itself comes to an end, and so does what a model nests.
                self.too_deep = self.too_deep or id(value) not in self._around
                return self.described(value, path)
            self._around.append(id(value))
            try:
                return self._held(value, path)
            finally:
                self._around.pop()
        if kind is float:
            # JSON knows no infinity, and would make it nothing.
            return self.described(value, path)
        if isinstance(value, os.PathLike):
            found = os.fspath(value)
            return found if isinstance(found, str) else os.fsdecode(found)
        dump = getattr(value, "model_dump", None)
        try:
            return dump(mode="json") if callable(dump) and not isinstance(value, type) else _built(value)
        except Exception:  # noqa: BLE001 - whatever an object does when it is looked at, it is described
            return self.described(value, path)

    def _held(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            made = {self._key(key, path): self.of(item, f"{path}.{key}") for key, item in value.items()}
            # INVARIANT: no value is judged in the place of another whose key reads the same.
            return made if len(made) == len(value) else self.described(value, path)
        found = [self.of(item, f"{path}[]") for item in value]
        return sorted(found, key=repr) if isinstance(value, set | frozenset) else found

    def described(self, value: Any, path: str) -> str:
        self._opaque.append(path.lstrip("."))
        return self._describe(value)

    def _key(self, key: Any, path: str) -> str:
        if type(key) is str:
            return key
        if type(key) in _PLAIN or type(key) is float:
            return str(key)
        self._opaque.append(path.lstrip("."))
        return described(key)


def plain(value: Any, opaque: list[str]) -> Any:
    """The value in the words of JSON; what JSON cannot hold is described, and named in `opaque`."""
    return _Words(opaque, described).of(value)


def plain_arguments(arguments: Mapping[str, Any], opaque: list[str]) -> dict[str, Any]:
    """The same for what a call is judged by, of which no part may be hidden too deep to be looked at."""
    words = _Words(opaque, described)
    found: dict[str, Any] = words.of(dict(arguments))
    if words.too_deep:
        raise InputError(f"The arguments are nested more than {DEEPEST} deep.", remedy="Make them flatter.")
    return found


def steady(value: Any) -> Any:
    """The value in the words of JSON, to be compared later: what JSON cannot hold is all the same."""
    return _Words([], lambda _: "\0").of(value)


def alike(was: Any, now: Any) -> bool:
    """Whether a value came back from JSON as what it was; a tuple may be a list, a path may be text."""
    if isinstance(was, list | tuple) and isinstance(now, list | tuple):
        return len(was) == len(now) and all(map(alike, was, now))
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(alike(value, now[key]) for key, value in was.items())
    if isinstance(was, set | frozenset) and isinstance(now, list):
        return sorted(was, key=repr) == now
    if isinstance(was, os.PathLike) and isinstance(now, str):
        return bool(os.fspath(was) == now)
    try:
        return bool(was == now)
    except Exception:  # noqa: BLE001 - what cannot be compared is not known to be the same
        return False


def _built(value: Any) -> Any:
    built = msgspec.to_builtins(value)
    msgspec.json.encode(built)
    return built


def described(value: Any) -> str:
    """What an object says of itself, cut short."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an object that cannot even say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR]}…"
