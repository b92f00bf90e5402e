"""One live connection to a server: the handshake of either era, which answer belongs to which request, time.

The keeper opens it and the hub sends requests through it. It judges nothing and changes no result.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.limits import Limit
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    HANDSHAKE_VERSIONS,
    INFO_KEY,
    INTERNAL_ERROR,
    SERVER_KEY,
    STATELESS,
    STATELESS_VERSIONS,
    VERSION_KEY,
    Message,
    RpcError,
    failure,
    meta_of,
    notification,
    outcome,
    response,
)
from checkrein.doors.gateway.pipes import LOST, Gone, Hear, Over, Pipe, PipeError

Progress = Callable[[Message], None]
# What we read ourselves, and show to people; other results are their clients' to read.
_READ_BY_US = frozenset(
    {"initialize", "server/discover", "tools/list", "prompts/list", "resources/list"}
    | {"resources/templates/list"}
)


class WrongEra(Exception):  # noqa: N818 - says what is so, not what went wrong
    """Raise when a server does not speak the era; `sure` when it said so itself."""

    def __init__(self, why: str, *, sure: bool) -> None:
        super().__init__(why)
        self.sure = sure


class Listener(Protocol):
    """Who hears what a server says by itself. Must not wait."""

    def asked(self, upstream: Upstream, message: Message) -> None:
        """The server sent a request; `respond` answers it."""
        ...

    def heard(self, upstream: Upstream, message: Message) -> None:
        """The server sent a notification."""
        ...

    def ended(self, upstream: Upstream, why: str) -> None:
        """The connection is over; comes once."""
        ...


class Upstream:
    """A connection. Everything happens on the gateway's loop."""

    def __init__(self, name: str, make_pipe: Callable[[Hear, Over], Pipe], listener: Listener) -> None:
        self.name, self._listener = name, listener
        self.era, self.version, self.instructions = "", "", ""
        self.info: Message = {}
        self.capabilities: Message = {}
        self.private_to = ""
        self.users: set[str] = set()
        # Whether a request was given up before its answer: the server may still work for who sent it.
        self.abandoned = False
        self.ready = self.started = False
        self.heard_at = self.used_at = 0.0
        self._pipe = make_pipe(self._hear, self._over)
        self._loop = asyncio.get_running_loop()
        self._last = 0
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._progress: dict[Any, Progress] = {}
        self._envelope: Message = {}
        self._why = ""

    @property
    def pid(self) -> int | None:
        return self._pipe.pid

    @property
    def tail(self) -> tuple[str, ...]:
        return self._pipe.tail

    @property
    def why(self) -> str:
        """Why it ended; nothing while it lives."""
        return self._why

    @property
    def busy(self) -> int:
        """How many requests wait for their answer."""
        return len(self._waiting)

    async def start(self, *, era: str, capabilities: Message, info: Message, seconds: float) -> None:
        """Open it and agree on an era; raises PipeError or WrongEra and leaves nothing running."""
        begin = self._shake_hands if era == HANDSHAKE else self._discover
        try:
            async with asyncio.timeout(seconds):
                await self._pipe.open()
                await begin(capabilities, info)
        except TimeoutError:
            await self.close()
            raise self._not_started(f"did not answer within {seconds:g} seconds") from None
        except Gone as error:
            await self.close()
            raise self._not_started(f"ended while it was started: {error}") from None
        except BaseException:
            await self.close()
            raise
        self.ready = self.started = True
        self.heard_at = self.used_at = self._loop.time()

    def _not_started(self, what: str) -> Exception:
        if self._pipe.fault is not None:
            return self._pipe.fault
        # Servers that never heard of the younger era may keep silent or fall over when asked about it.
        return WrongEra(f"It {what}.", sure=False) if self.era == STATELESS else self._failed(what)

    def _failed(self, what: str) -> PipeError:
        # What it wrote is not said here: clients hear this, and it may have written a secret.
        return PipeError(
            f"{self.name} {what}.",
            remedy=f"See `checkrein servers logs {self.name}` for what it wrote.",
        )

    async def _shake_hands(self, capabilities: Message, info: Message) -> None:
        self.era = HANDSHAKE
        params = {"protocolVersion": HANDSHAKE_VERSIONS[-1], "capabilities": capabilities, "clientInfo": info}
        try:
            found = await self.request("initialize", params, seconds=None)
        except RpcError as error:
            raise WrongEra(f"It answered: {error.message}", sure=True) from None
        if not isinstance(found, dict) or found.get("protocolVersion") not in HANDSHAKE_VERSIONS:
            raise self._failed("speaks a version of the protocol that we do not know")
        self.version = found["protocolVersion"]
        self.info = _object(found.get("serverInfo"))
        self._describe(found)
        self._pipe.send(notification("notifications/initialized"))

    async def _discover(self, capabilities: Message, info: Message) -> None:
        self.era, self.version = STATELESS, STATELESS_VERSIONS[-1]
        self._envelope = {CAPABILITIES_KEY: capabilities, INFO_KEY: info}
        try:
            found = await self.request("server/discover", {}, seconds=None)
        except RpcError as error:
            raise WrongEra(f"It answered: {error.message}", sure=True) from None
        offered = found.get("supportedVersions") if isinstance(found, dict) else None
        common = [each for each in STATELESS_VERSIONS if isinstance(offered, list) and each in offered]
        if not common:
            raise WrongEra("It speaks no version of this era that we know.", sure=True)
        self.version = common[-1]
        self.info = _object(meta_of(found).get(SERVER_KEY))
        self._describe(found)

    def _describe(self, found: Message) -> None:
        self.capabilities = _object(found.get("capabilities"))
        instructions = found.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else ""

    async def request(
        self,
        method: str,
        params: Message,
        *,
        seconds: float | None,
        progress: Progress | None = None,
        stateless: Message | None = None,
        limit: Limit | None = None,
    ) -> Any:
        """The raw result; raises RpcError, Gone or TimeoutError. Whoever stops waiting cancels it.

        `limit`: like `seconds`, for who may put it off meanwhile.
        """
        if self._why:
            raise Gone(self._why)
        self._last = number = self._last + 1
        if progress is not None or self.era == STATELESS:
            params = self._with_meta(params, number if progress else None, stateless)
        loop = self._loop
        waiting = loop.create_future()
        self._pipe.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        self._waiting[number] = waiting
        if progress is not None:
            self._progress[number] = progress
        timer = None if seconds is None else loop.call_later(seconds, self._expire, number, seconds)
        if limit is not None:
            limit.watch(partial(self._expire, number, limit.seconds))
        if method != "ping":
            self.used_at = loop.time()
        try:
            result = await waiting
            return replace_surrogates(result) if method in _READ_BY_US else result
        except asyncio.CancelledError:
            if number in self._waiting and method != "initialize":
                self.abandoned = True
                self.notify("notifications/cancelled", {"requestId": number, "reason": "no longer wanted"})
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._waiting.pop(number, None)
            if progress is not None:
                self._progress.pop(number, None)

    def _with_meta(self, params: Message, token: int | None, stateless: Message | None) -> Message:
        meta = dict(meta_of(params))
        if self.era == STATELESS:
            meta.update(self._envelope if stateless is None else stateless)
            meta[VERSION_KEY] = self.version
            meta.setdefault(CAPABILITIES_KEY, {})
        if token is not None:
            meta["progressToken"] = token
        return {**params, "_meta": meta}

    def _expire(self, number: int, seconds: float) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            self.abandoned = True
            self.notify("notifications/cancelled", {"requestId": number, "reason": "it took too long"})
            waiting.set_exception(TimeoutError(f"{self.name} did not answer within {seconds:g} seconds."))

    def notify(self, method: str, params: Message | None = None) -> None:
        """What a server that is gone does not hear any more is no loss."""
        with contextlib.suppress(Gone):
            self._pipe.send(notification(method, params))

    def respond(self, message: Message) -> None:
        with contextlib.suppress(Gone):
            self._pipe.send(message)

    async def close(self, why: str = "closed") -> None:
        """End it; when this returns nothing of it runs any more."""
        self._over(why)
        await self._pipe.close()

    def _hear(self, message: Message) -> None:
        self.heard_at = self._loop.time()
        method = message.get("method")
        if method is None:
            self._answered(message)
        elif "id" in message:
            self._asked(message)
        elif method == "notifications/progress":
            self._advanced(message.get("params") or {})
        else:
            self._tell(self._listener.heard, message)

    def _answered(self, message: Message) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        # No step comes after the end, however late whoever waits gets to run.
        self._progress.pop(message["id"], None)
        if "result" in message:
            waiting.set_result(message["result"])
        elif LOST in message:
            waiting.set_exception(Gone(message[LOST]))
        else:
            waiting.set_exception(_error_in(message))

    def _asked(self, message: Message) -> None:
        if message["method"] == "ping":
            self.respond(response(message["id"], {}))
        elif not self._tell(self._listener.asked, message):
            self.respond(failure(message["id"], RpcError(INTERNAL_ERROR, "This could not be handled.")))

    def _advanced(self, params: Message) -> None:
        token = params.get("progressToken")
        tell = self._progress.get(token) if isinstance(token, int) else None
        if tell is not None:
            try:
                tell(params)
            except Exception as error:  # noqa: BLE001 - who watches a request does not end it
                self._report(error)

    def _tell(self, listener: Callable[[Upstream, Any], None], what: Any) -> bool:
        """Whether the listener took it; its mistakes do not end a connection that others use."""
        try:
            listener(self, what)
        except Exception as error:  # noqa: BLE001
            self._report(error)
            return False
        return True

    def _report(self, error: Exception) -> None:
        self._loop.call_exception_handler(
            {"message": f"A message of {self.name} could not be handled", "exception": error}
        )

    def _over(self, why: str) -> None:
        if self._why:
            return
        self._why, self.ready = why, False
        waiting, self._waiting = list(self._waiting.values()), {}
        for each in waiting:
            if not each.done():
                each.set_exception(Gone(why))
        self._progress.clear()
        self._tell(self._listener.ended, why)


def _error_in(message: Message) -> Exception:
    try:
        outcome(message)
    except RpcError as error:
        return error
    return RpcError(INTERNAL_ERROR, "The server sent an error without a message.")


def _object(found: Any) -> Message:
    return found if isinstance(found, dict) else {}
