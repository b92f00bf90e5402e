"""A program's function as a gated tool: how it is called, what it is called, what its program says of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.call import digest
from checkrein.classify.tools import vocabulary
from checkrein.doors.library.arguments import Shape, alike, plain_arguments, steady
from checkrein.doors.library.driving import Steps, drive, drive_async
from checkrein.doors.library.manner import Manner
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.turn import Turn
from checkrein.doors.library.wishes import Wishes
from checkrein.errors import InputError

if TYPE_CHECKING:
    from checkrein.doors.library.gate import Gate


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a gate knows of a tool besides its function."""

    name: str
    server: str | None
    wishes: Wishes
    manner: Manner
    annotations: dict[str, Any] = {}
    definition: str = ""


class Tool:
    """One wrapped function."""

    def __init__(self, gate: Gate, function: Callable[..., Any], spec: Spec, hidden: Sequence[str]) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InputError("A tool that yields its result bit by bit cannot be gated.", remedy="Return it.")
        self.gate, self.function, self.spec = gate, function, spec
        self.shape = Shape(function, (*hidden, *_own(function)))
        self.is_async = is_async(function)

    def wrapped(self) -> Callable[..., Any]:
        """The function as the program calls it from now on."""
        if self.is_async:

            @functools.wraps(self.function)
            async def gated_async(*args: Any, **kwargs: Any) -> Any:
                return await drive_async(self._steps(args, kwargs))

            return gated_async

        @functools.wraps(self.function)
        def gated(*args: Any, **kwargs: Any) -> Any:
            return drive(self._steps(args, kwargs))

        return gated

    def resumed(self, pending: Pending, data: Any) -> Any:
        """Go on with a call that waited; to be awaited where the tool is asynchronous."""

        def prepare(arguments: dict[str, Any] | None) -> Callable[[], Any]:
            args, kwargs = self.shape.call(arguments or {})
            return functools.partial(self.function, *args, **kwargs)

        manner = msgspec.structs.replace(self.spec.manner, phase=pending.phase)
        steps = Turn(self.gate.authority, manner, pending.call, prepare).again(pending, data)
        return drive_async(steps) if self.is_async else drive(steps)

    def _steps(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps:
        opaque: list[str] = []
        raw = self.shape.arguments(args, kwargs)
        arguments = plain_arguments(raw, opaque)

        def prepare(changed: dict[str, Any] | None) -> Callable[[], Any]:
            if changed is None:
                return functools.partial(self.function, *args, **kwargs)
            # What nobody changed stays what it is, and is not made anew from its words.
            same = {name: raw[name] for name in raw.keys() & changed.keys() if _as_it_was(name, changed)}
            others, named = self.shape.call(changed, args, kwargs, same)
            return functools.partial(self.function, *others, **named)

        def _as_it_was(name: str, changed: dict[str, Any]) -> bool:
            return digest(changed[name]) == digest(arguments[name])

        def now() -> dict[str, Any]:
            found: dict[str, Any] = steady(self.shape.arguments(args, kwargs))
            return found

        def lost() -> str:
            return self._lost(raw, arguments, args, kwargs)

        call = self.gate.tool_call(self.spec, arguments)
        turn = Turn(self.gate.authority, self.spec.manner, call, prepare, opaque=opaque, now=now, lost=lost)
        turn.waited = self.spec.wishes.looks
        return turn.fresh(self.gate.wish(self.spec, call, raw, may_wait=self.is_async))

    def _lost(
        self, raw: dict[str, Any], arguments: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        """The first argument that another process would not get as it is; nothing where all would be."""
        try:
            kept = msgspec.json.decode(msgspec.json.encode(arguments))
            others, named = self.shape.call(kept, args, kwargs)
            again = self.shape.arguments(others, named)
        except (InputError, msgspec.MsgspecError, ValueError, OverflowError, TypeError) as error:
            return str(error)
        return next((f"`{name}`" for name, was in raw.items() if not alike(was, again.get(name))), "")

    def is_same(self, other: Tool) -> bool:
        """Whether both stand for one function, wrapped anew perhaps, on the same object."""
        (mine, on), (others, other_on) = _whose(self.function), _whose(other.function)
        return mine == others and on is other_on


def _whose(function: Any) -> tuple[tuple[str, str], Any]:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", "")
    return (getattr(function, "__module__", "") or "", name), getattr(
        function, "__self__", None if name else function
    )


def _own(function: Callable[..., Any]) -> Sequence[str]:
    """What a method is called on: the program's, and no part of the call."""
    first = next(iter(inspect.signature(function).parameters), "")
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    # INVARIANT: what a plain function is given is judged, whatever it is called.
    return (first,) if first in ("self", "cls") and inside and not inside.endswith("<locals>") else ()


def is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    )


def server_for(name: str, server: str) -> str | None:
    """A tool that coding agents have too is judged as theirs is; every other is one of the program's own."""
    return None if name.lower() in vocabulary() else server
