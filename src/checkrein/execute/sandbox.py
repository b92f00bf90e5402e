"""What a sandbox is, whichever language it speaks: steps that end in calls, a result or a failure.

Engines implement `Engine` and `Session`; the eval door drives them. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from checkrein.errors import CheckreinError

# A call's arguments or a tool's result, as JSON.
LARGEST_VALUE, DEEPEST_VALUE = 1 << 20, 64
FailureKind = Literal["syntax", "types", "error", "time", "memory", "output", "crash", "unsupported"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a script may use. Waiting for calls and for people costs nothing of it."""

    seconds: float = 30.0
    memory: int = 64 << 20
    calls: int = 100
    output: int = 64 << 10
    result: int = 256 << 10
    source: int = 64 << 10


class Tool(msgspec.Struct, frozen=True):
    """A tool as the script writes it: `fs__read_file`."""

    name: str


class Wanted(msgspec.Struct, frozen=True):
    """A call the script makes, and where in it; `arguments` are exactly what would be executed."""

    id: int
    name: str
    arguments: dict[str, Any]
    line: int = 0
    column: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What a call came to: a value, a tool's error, or a refusal with its reason and what a person said."""

    value: Any = None
    error: str = ""
    denied: str = ""
    said: str = ""


class Paused(msgspec.Struct, frozen=True):
    """Calls wait for their answers."""

    wanted: tuple[Wanted, ...]
    output: str = ""


class Ended(msgspec.Struct, frozen=True):
    """The script is through."""

    value: Any
    output: str = ""


class Failed(msgspec.Struct, frozen=True):
    """The script came to an end it did not want, or was brought to one."""

    kind: FailureKind
    message: str
    line: int = 0
    output: str = ""


Step = Paused | Ended | Failed


class DamagedError(CheckreinError):
    """Raise when a suspended run cannot be taken up again."""

    code = "run.damaged"


class Session(Protocol):
    """One script."""

    async def start(self, source: str) -> Step: ...

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        """Go on with answers to some or all of the calls that wait."""
        ...

    async def dump(self) -> bytes:
        """The script as it waits; afterwards nothing of it runs or is held."""
        ...

    async def close(self) -> None:
        """End it, whatever it does; safe to say twice."""
        ...


class Restorable(Session, Protocol):
    """A session that can take up what one of its kind left."""

    async def restore(self, state: Any) -> None: ...


S = TypeVar("S", bound=Restorable)


async def restored(session: S, state: Any) -> S:
    """The session once it has taken up the state; where it cannot, nothing of it runs or is held."""
    try:
        await session.restore(state)
    except BaseException:
        await session.close()
        raise
    return session


class Engine(Protocol):
    """A sandbox for one language."""

    async def open(self, tools: Sequence[Tool], limits: Limits, *, stubs: str = "") -> Session: ...

    async def load(self, dumped: bytes, tools: Sequence[Tool], limits: Limits) -> Session:
        """A dumped script, waiting as it was; raises DamagedError."""
        ...

    async def close(self) -> None:
        """End every worker."""
        ...
