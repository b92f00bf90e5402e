import asyncio

import pytest

from checkrein.doors.gateway.http_answers import (
    CLOSE,
    Refused,
    busy,
    no,
    read_body,
    refuse,
    send_json,
    send_nothing,
    too_large,
)
from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.messages import LARGEST, RpcError, notification, response
from doors.gateway.talking import Taken


class Coming(Taken):
    """A request whose body comes in parts; what comes instead of its end, where it `leaves`, is nothing."""

    def __init__(self, *bodies, leaves=False):
        super().__init__()
        self.waiting = [(body, True) for body in bodies]
        if leaves:
            self.waiting.append(None)
        else:
            self.waiting[-1] = bodies[-1], False

    async def part(self):
        return self.waiting.pop(0)


def body_of(turn):
    return asyncio.run(read_body(Exchange(turn, 0.0, lambda: None)))


def test_a_body_is_put_together():
    assert body_of(Coming(b"abc")) == b"abc"
    assert body_of(Coming(b"a", b"", b"bc")) == b"abc"


def test_a_body_whose_sender_left_is_none():
    assert body_of(Coming(b"a", leaves=True)) is None
    assert body_of(Coming(leaves=True)) is None


@pytest.mark.invariant("no more than one message is ever held, whatever length was announced")
def test_more_than_a_message_is_never_held():
    assert len(body_of(Coming(b" " * LARGEST))) == LARGEST
    for bodies in ([b" " * (LARGEST + 1)], [b" " * LARGEST, b" "], [b" " * LARGEST, b"  ", b"never read"]):
        with pytest.raises(Refused) as caught:
            body_of(Coming(*bodies))
        assert caught.value.status == 413


def sent(work):
    """What a piece of work says, given an exchange."""
    taken = Taken()

    async def run():
        await work(Exchange(taken, 0.0, lambda: None))

    asyncio.run(run())
    return taken


def test_an_answer_is_json_with_its_length():
    async def work(exchange):
        exchange.lines = b"mcp-session-id: s\r\n"
        await send_json(exchange, response(1, {}), 404)

    taken = sent(work)
    assert taken.status == 404
    assert taken.lines.startswith(b"content-type: application/json\r\nx-content-type-options: nosniff\r\n")
    assert taken.lines.endswith(b"\r\nmcp-session-id: s\r\n")
    assert taken.body == b'{"jsonrpc":"2.0","id":1,"result":{}}'


def test_after_events_the_answer_is_the_last_of_them():
    async def work(exchange):
        exchange.send(notification("n"))
        await send_json(exchange, response(1, {}), 404)
        await refuse(exchange, no(500, "too late"))

    taken = sent(work)
    assert taken.status == 200
    assert b'"result"' in taken.parts[-1] and taken.ended
    assert b"too late" not in taken.body


def test_who_is_gone_is_told_nothing():
    async def work(exchange):
        exchange.give_up("lost", cancel=False)
        await send_json(exchange, response(1, {}))

    assert sent(work).status == 0


def test_what_is_answered_is_not_answered_twice():
    async def work(exchange):
        await send_json(exchange, response(1, {}))
        exchange.send(notification("n"))
        await asyncio.sleep(0)

    assert sent(work).body == b'{"jsonrpc":"2.0","id":1,"result":{}}'


def test_nothing_is_an_answer_too():
    taken = sent(lambda exchange: send_nothing(exchange, 202))
    assert (taken.status, taken.lines, taken.body, taken.ended) == (202, b"", b"", True)


def test_a_refusal_says_why_and_shows_no_session():
    async def work(exchange):
        exchange.lines = b"mcp-session-id: s\r\n"
        await refuse(exchange, Refused(400, RpcError(-32020, "Because."), 7))

    taken = sent(work)
    assert (taken.status, taken.last) == (400, False)
    assert b"mcp-session-id" not in taken.lines
    assert taken.body == b'{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"Because."}}'


def test_a_refusal_may_be_the_last_word_of_its_connection():
    taken = sent(lambda exchange: refuse(exchange, busy("Slow.", 2.0, CLOSE)))
    assert (taken.status, taken.last) == (429, True)
    assert taken.lines.endswith(b"nosniff\r\nretry-after: 2\r\n")


def test_who_has_to_wait_is_told_how_long():
    assert dict(busy("Slow.", 0.2).headers)[b"retry-after"] == b"1"
    assert dict(busy("Slow.", 61.3).headers)[b"retry-after"] == b"62"
    assert dict(too_large().headers)[b"connection"] == b"close"
