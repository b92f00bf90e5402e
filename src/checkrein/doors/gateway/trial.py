"""One look at a server before anybody relies on it: started apart from the others, listed, ended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import checkrein
from checkrein.doors.gateway.definitions import read
from checkrein.doors.gateway.inventory import pages
from checkrein.doors.gateway.keeper import EVERYTHING, Limits, Unreachable
from checkrein.doors.gateway.mentions import flags
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    METHOD_NOT_FOUND,
    STATELESS,
    Message,
    RpcError,
    failure,
    response,
)
from checkrein.doors.gateway.pipes import Gone, PipeError, SignIn, pipe_for
from checkrein.doors.gateway.upstream import Upstream, WrongEra
from checkrein.settings.servers import ServerSpec, resolve


class _Alone:
    """Nobody is behind a trial: what the server asks for is not there."""

    def asked(self, upstream: Upstream, message: Message) -> None:
        if message["method"] == "roots/list":
            upstream.respond(response(message["id"], {"roots": []}))
        else:
            upstream.respond(
                failure(message["id"], RpcError(METHOD_NOT_FOUND, "Nobody is here to be asked."))
            )

    def heard(self, upstream: Upstream, message: Message) -> None:
        """Nobody listens."""

    def ended(self, upstream: Upstream, why: str) -> None:
        """Whoever waits hears of it."""


async def trial(spec: ServerSpec, limits: Limits) -> dict[str, Any]:
    """What the server says about itself; raises Unreachable or what keeps it from starting."""
    began = time.monotonic()
    upstream = await started(await asyncio.to_thread(resolve, spec), limits.start_seconds)
    try:
        tools = await pages(upstream, "tools")
        prompts = await pages(upstream, "prompts")
    except (RpcError, Gone, TimeoutError) as error:
        raise Unreachable(f"{spec.name} started, but its tools cannot be listed: {error}") from None
    finally:
        await upstream.close()
    return {
        "info": upstream.info,
        "version": upstream.version,
        "era": upstream.era,
        "seconds": round(time.monotonic() - began, 3),
        "instructions": upstream.instructions,
        "capabilities": upstream.capabilities,
        "tools": [_told(spec.name, each) for each in tools],
        "prompts": [each.get("name") for each in prompts if isinstance(each, dict)],
    }


async def started(spec: ServerSpec, seconds: float, sign_in: SignIn | None = None) -> Upstream:
    """A connection to a server whose references are resolved; nobody else knows of it."""
    wrong: WrongEra | None = None
    info = {"name": "checkrein", "title": "Checkrein", "version": checkrein.__version__}
    for era in (HANDSHAKE, STATELESS):
        upstream = Upstream(
            spec.name, lambda hear, over: pipe_for(spec, hear, over, sign_in=sign_in), _Alone()
        )
        try:
            await upstream.start(era=era, capabilities=EVERYTHING, info=info, seconds=seconds)
            return upstream
        except WrongEra as error:
            wrong = error
        except PipeError as error:
            # A person tries it, and nothing of it is kept that they could look at afterwards.
            said = f" It wrote: {upstream.tail[-1]}" if upstream.tail else ""
            raise PipeError(
                f"{error.message}{said}", remedy="" if said else error.remedy, lasting=error.lasting
            ) from None
    raise Unreachable(f"{spec.name} speaks no version of the protocol that we know. {wrong}")


def _told(server: str, raw: Any) -> dict[str, Any]:
    definition = read(server, "tool", raw)
    description = raw.get("description") if isinstance(raw, dict) else ""
    return {
        "name": raw.get("name") if isinstance(raw, dict) else None,
        "description": description if isinstance(description, str) else "",
        "definition": raw,
        "flags": flags(definition, {}),
    }
