"""Attempts of a person to sign in at servers: begun by the gateway, going on while it does other things.

At most one for each server. What came of the last one is remembered until the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from checkrein.doors.gateway import sign_in
from checkrein.doors.gateway.pipes import PipeError
from checkrein.doors.gateway.signed_in import is_signed_in
from checkrein.doors.gateway.trial import started
from checkrein.errors import CheckreinError, InputError
from checkrein.settings.servers import ServerSpec, resolve

Finished = Callable[["Attempt"], Awaitable[None]]
NONE, WAITING, DONE, FAILED = "none", "waiting", "done", "failed"


class Attempt:
    """One attempt: waiting until the person came back, then done or failed."""

    def __init__(self, spec: ServerSpec, actor: str) -> None:
        self.spec, self.actor = spec, actor
        self.state, self.url, self.port = WAITING, "", 0
        self.error: CheckreinError | None = None
        self.task: asyncio.Task[None] | None = None
        self.known = asyncio.Event()

    async def run(self, seconds: float, finished: Finished) -> None:
        """To the end; what goes wrong is remembered, not raised."""
        try:
            await self._sign_in(seconds)
            await finished(self)
            self._enter(DONE)
        except CheckreinError as error:
            self.fail(error)
        except asyncio.CancelledError:
            self.fail(_ended(self.spec.name))
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            self.fail(PipeError(f"Signing in at {self.spec.name} failed: {type(error).__name__}."))
        finally:
            self.known.set()

    async def _sign_in(self, seconds: float) -> None:
        way_back = sign_in.SignIn(
            self.spec.name,
            self._shown,
            way_back=self.spec.client.way_back,
            seconds=sign_in.WAIT_SECONDS,
        )
        try:
            await way_back.open()
            self.port = way_back.port
            spec = await asyncio.to_thread(resolve, self.spec)
            upstream = await started(spec, seconds + sign_in.WAIT_SECONDS, way_back)
            await upstream.close()
        finally:
            await way_back.close()

    def _shown(self, url: str) -> None:
        self.url = url
        self.known.set()

    def _enter(self, state: str) -> None:
        if self.state == WAITING:
            self.state, self.url = state, ""

    def fail(self, error: CheckreinError) -> None:
        self.error = self.error or error
        self._enter(FAILED)

    async def end(self, error: CheckreinError | None = None) -> None:
        """Give it up; nothing of it is left when this returns."""
        if self.task is not None and not self.task.done():
            self.fail(error or _ended(self.spec.name))
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({self.task})


class Attempts:
    """The attempts by the server's name. Everything happens on the gateway's loop."""

    def __init__(self, finished: Finished) -> None:
        self._finished = finished
        self._by_name: dict[str, Attempt] = {}

    async def begin(self, spec: ServerSpec, actor: str, seconds: float) -> dict[str, Any]:
        """How the attempt does once it is known where the person has to go; raises what hinders it."""
        _check(spec)
        attempt = self._by_name.get(spec.name)
        # Whoever asks twice gets the same page: another one would spoil the first.
        if attempt is None or attempt.state != WAITING or not _is_same(attempt, spec):
            if attempt is not None:
                await attempt.end()
            attempt = self._by_name[spec.name] = Attempt(spec, actor)
            attempt.task = asyncio.get_running_loop().create_task(attempt.run(seconds, self._finished))
        try:
            async with asyncio.timeout(seconds):
                await attempt.known.wait()
        except TimeoutError:
            await attempt.end(
                PipeError(f"{spec.name} did not say within {seconds:g} seconds where to sign in.")
            )
        if attempt.error is not None:
            raise attempt.error
        return self.state(spec)

    def state(self, spec: ServerSpec) -> dict[str, Any]:
        """waiting, done or failed with its reason; none when nobody has tried."""
        attempt = self._by_name.get(spec.name)
        error = attempt.error if attempt else None
        return {
            "name": spec.name,
            "state": attempt.state if attempt else NONE,
            "url": attempt.url if attempt else "",
            "port": attempt.port if attempt else 0,
            "reason": error.message if error else "",
            "remedy": error.remedy if error else "",
            "signed_in": bool(spec.oauth) and is_signed_in(spec.name),
        }

    async def keep_only(self, specs: dict[str, ServerSpec]) -> None:
        """INVARIANT: nobody signs in for a server that is gone or another one now."""
        for name, attempt in list(self._by_name.items()):
            if name not in specs or not _is_same(attempt, specs[name]):
                del self._by_name[name]
                await attempt.end()

    async def forget(self, name: str) -> None:
        """As if nobody had tried."""
        if (attempt := self._by_name.pop(name, None)) is not None:
            await attempt.end()

    async def close(self) -> None:
        await self.keep_only({})


def check_address(spec: ServerSpec) -> None:
    if not spec.url:
        raise InputError(f"{spec.name} is a program on this machine; it has no sign-in.")


def _check(spec: ServerSpec) -> None:
    check_address(spec)
    if not spec.oauth:
        raise InputError(
            f"{spec.name} is not set up for a sign-in.",
            remedy='Set "oauth": true for it in the servers file, or add it with --oauth.',
        )


def _is_same(attempt: Attempt, spec: ServerSpec) -> bool:
    return attempt.spec.fingerprint == spec.fingerprint


def _ended(name: str) -> PipeError:
    return PipeError(f"Signing in at {name} was given up.")
