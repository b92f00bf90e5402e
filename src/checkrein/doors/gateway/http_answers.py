"""How the HTTP front reads a body and answers: JSON, nothing, or a refusal that says why.

Every refusal has the shape of a JSON-RPC error, so that clients can show what it says.
"""

from __future__ import annotations

import math
from typing import Any

from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.messages import (
    INVALID_REQUEST,
    LARGEST,
    Message,
    RpcError,
    encode,
    failure,
)

Pairs = tuple[tuple[bytes, bytes], ...]
CLOSE: Pairs = ((b"connection", b"close"),)
_JSON = b"content-type: application/json\r\nx-content-type-options: nosniff\r\n"
# Of one client: how much of its requests under way is held.
MOST_HELD = 2 * LARGEST


class Refused(Exception):  # noqa: N818 - not a fault of ours: the sender hears of it
    """A request that goes no further; `known` is its JSON-RPC id where it was read."""

    def __init__(self, status: int, error: RpcError, known: Any = None, headers: Pairs = ()) -> None:
        super().__init__(error.message)
        self.status, self.error, self.known, self.headers = status, error, known, headers


def no(status: int, why: str, *, code: int = INVALID_REQUEST, headers: Pairs = ()) -> Refused:
    return Refused(status, RpcError(code, why), headers=headers)


def busy(why: str, seconds: float, headers: Pairs = ()) -> Refused:
    return no(429, why, headers=((b"retry-after", b"%d" % max(1, math.ceil(seconds))), *headers))


def too_large() -> Refused:
    return no(413, f"A message may have {LARGEST:,} bytes.", headers=CLOSE)


async def read_body(exchange: Exchange) -> bytes | None:
    """The whole body; None when the client left before it was here."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = await exchange.turn.part()
        if part is None:
            return None
        body, more = part
        size += len(body)
        # INVARIANT: no more than one message is ever held, whatever length was announced.
        if size > LARGEST:
            raise too_large()
        # INVARIANT: nor more than two of one client's together, however many requests it sends at once.
        if exchange.hold(len(body)) > MOST_HELD:
            raise busy("Too much is under way already.", 1.0, CLOSE)
        if not more:
            return b"".join((*parts, body)) if parts else body
        parts.append(body)


async def send_json(
    exchange: Exchange, message: Message, status: int = 200, lines: bytes = b"", *, last: bool = False
) -> None:
    """The answer: the last event where events went before it, else the whole response."""
    if exchange.stream is not None:
        await exchange.finish(message)
        return
    if exchange.why == "lost":
        return
    exchange.why = exchange.why or "answered"
    await exchange.turn.answer(status, _JSON + exchange.lines + lines, encode(message), last=last)


async def send_nothing(exchange: Exchange, status: int) -> None:
    await exchange.turn.answer(status, b"", b"")


async def refuse(exchange: Exchange, refused: Refused) -> None:
    """Say no, unless the client was already told something else."""
    if exchange.stream is None:
        exchange.lines = b""
        lines = b"".join(b"%b: %b\r\n" % each for each in refused.headers if each not in CLOSE)
        last = CLOSE[0] in refused.headers
        await send_json(exchange, failure(refused.known, refused.error), refused.status, lines, last=last)
