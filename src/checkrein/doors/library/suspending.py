"""`suspend` inside a tool: stop here, and go on with what the program is told, perhaps in another process.

A tool that goes on runs from its beginning again; each `suspend` it comes to gives what was told for it.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, TypeVar, overload

import msgspec

from checkrein.doors.library.arguments import plain
from checkrein.errors import InputError

T = TypeVar("T")


class Stopped(BaseException):
    """Carries what a tool wants to be told about to whoever runs it."""

    def __init__(self, step: int, payload: Any, schema: Any) -> None:
        super().__init__("This tool waits to be told something; its caller takes care of it.")
        self.step, self.payload, self.schema = step, payload, schema


class Scene:
    """One run of a tool: what it was told so far, and whether it stopped."""

    def __init__(self, told: tuple[Any, ...] = (), says: Any = None, hears: Any = None) -> None:
        self.told, self.says, self.hears = told, says, hears
        self.step = 0
        self.stopped: Stopped | None = None

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        token = _scene.set(self)
        try:
            yield
        finally:
            _scene.reset(token)

    def suspend(self, payload: Any, schema: Any) -> Any:
        if self.stopped is not None:
            # INVARIANT: a tool that swallows its own stop does not get past it.
            raise self.stopped
        self.step += 1
        wanted = schema if schema is not None else self.hears
        if self.step <= len(self.told):
            return fitting(self.told[self.step - 1], wanted, "What the tool was told")
        said = _said(payload)
        if self.says is not None:
            fitting(said, self.says, "What the tool says when it stops")
        self.stopped = Stopped(self.step, said, wanted)
        raise self.stopped


_scene: contextvars.ContextVar[Scene | None] = contextvars.ContextVar("checkrein_scene", default=None)


@overload
def suspend(payload: Any = None, *, resume: type[T]) -> T: ...
@overload
def suspend(payload: Any = None) -> Any: ...
def suspend(payload: Any = None, *, resume: Any = None) -> Any:
    """Stop the tool and show `payload`; what it is resumed with, as `resume` where a type is given."""
    scene = _scene.get()
    if scene is None:
        raise InputError("`suspend` works inside a tool of a Gate only.", remedy="Wrap the tool first.")
    return scene.suspend(payload, resume)


def fitting(data: Any, kind: Any, what: str) -> Any:
    """The data as the type that was promised, or InputError."""
    if kind is None:
        return data
    validate = getattr(kind, "model_validate", None)
    try:
        return validate(data) if validate is not None else msgspec.convert(data, kind)
    except ValueError as error:
        raise InputError(f"{what} does not fit: {error}") from None


def _said(payload: Any) -> Any:
    opaque: list[str] = []
    said = plain(payload, opaque)
    if opaque:
        raise InputError(f"What a tool says when it stops must be JSON; {opaque[0] or 'it'} is not.")
    return said
