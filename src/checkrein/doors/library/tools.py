"""A program's function as a gated tool: how it is called, what it is called, what its program says of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.classify.tools import vocabulary
from checkrein.doors.library.arguments import Shape, plain
from checkrein.doors.library.driving import Steps, drive, drive_async
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.turn import Manner, Turn
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
        arguments: dict[str, Any] = plain(raw, opaque)

        def prepare(changed: dict[str, Any] | None) -> Callable[[], Any]:
            if changed is None:
                return functools.partial(self.function, *args, **kwargs)
            others, named = self.shape.call(changed, args, kwargs)
            return functools.partial(self.function, *others, **named)

        def now() -> dict[str, Any]:
            found: dict[str, Any] = plain(self.shape.arguments(args, kwargs), [])
            return found

        call = self.gate.tool_call(self.spec, arguments)
        turn = Turn(self.gate.authority, self.spec.manner, call, prepare, opaque=opaque, now=now)
        return turn.fresh(self.gate.wish(self.spec, call, raw, may_wait=self.is_async))


def _own(function: Callable[..., Any]) -> Sequence[str]:
    """What a method is called on: the program's, and no part of the call."""
    first = next(iter(inspect.signature(function).parameters), "")
    return (first,) if first in ("self", "cls") else ()


def is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    )


def server_for(name: str, server: str) -> str | None:
    """A tool that coding agents have too is judged as theirs is; every other is one of the program's own."""
    return None if name.lower() in vocabulary() else server
