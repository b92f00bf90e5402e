"""What carries messages to a server and back. A connection owns one pipe; a pipe knows no protocol.

`pipe_for` picks the kind a server needs; the module behind it is loaded then, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from checkrein.doors.gateway.messages import Message
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

Hear = Callable[[Message], None]
Over = Callable[[str], None]

MOST_UNSENT = 64 << 20
# In place of a result: the answer to this request cannot come any more, the connection goes on. No server can
# send it, because a message with neither a result nor an error is none.
LOST = "checkrein/lost"


class PipeError(CheckreinError):
    """Raise when a server cannot be started or connected to; `lasting` when trying again cannot help."""

    code = "server.failed"

    def __init__(self, message: str, *, remedy: str = "", lasting: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.lasting = lasting


class Gone(Exception):  # noqa: N818 - says what is so, not what went wrong
    """Raise when a connection ended: what was sent may or may not have happened."""


class SignInAnswer(Protocol):
    """What came back from the page a person signed in at: the parameters of those names."""

    @property
    def code(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def iss(self) -> str | None: ...


class SignIn(Protocol):
    """Takes a person to a page and waits for them; `redirect_uri` is where the page sends them back to."""

    @property
    def redirect_uri(self) -> str: ...

    async def __call__(self, url: str) -> SignInAnswer: ...


class Pipe(Protocol):
    """One way to a server. Made with the resolved spec, `hear` for each message and `over` for its end."""

    async def open(self) -> None:
        """Be ready to send; raises PipeError and leaves nothing running."""
        ...

    def send(self, message: Message) -> None:
        """Never waits; raises Gone when closed or when the other side does not read."""
        ...

    async def close(self) -> None:
        """End it, as often as one likes; when this returns nothing of it runs any more."""
        ...

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines it wrote beside the messages."""
        ...

    @property
    def ended(self) -> str:
        """Why it ended; nothing while it is open."""
        ...

    @property
    def fault(self) -> PipeError | None:
        """What ended it in words for a person, where there are better ones than `ended`."""
        ...

    @property
    def pid(self) -> int | None: ...


PipeMaker = Callable[["ServerSpec", Hear, Over], Pipe]


def pipe_for(spec: ServerSpec, hear: Hear, over: Over, *, sign_in: SignIn | None = None) -> Pipe:
    """The pipe a server needs: a process of our own, or a connection to where it listens."""
    if spec.url:
        from checkrein.doors.gateway.http_pipe import HttpPipe

        return HttpPipe(spec, hear, over, sign_in=sign_in)
    from checkrein.doors.gateway.stdio_pipe import StdioPipe

    return StdioPipe(spec, hear, over)
