import asyncio

import pytest

from checkrein.doors.gateway.http_answers import (
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


def parts(*bodies, then=None):
    """What a server hands over of a body, and what comes instead of its end."""
    waiting = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    if then is None:
        waiting[-1]["more_body"] = False
    else:
        waiting.append({"type": then})

    async def receive():
        return waiting.pop(0)

    return receive


def body_of(receive):
    async def read():
        return await read_body(receive, Exchange(None, 0.0, lambda: None))

    return asyncio.run(read())


def test_a_body_is_put_together():
    assert body_of(parts(b"abc")) == b"abc"
    assert body_of(parts(b"a", b"", b"bc")) == b"abc"


def test_a_body_whose_sender_left_is_none():
    assert body_of(parts(b"a", then="http.disconnect")) is None
    assert body_of(parts(then="http.disconnect")) is None


def test_more_than_a_message_is_never_held():
    assert len(body_of(parts(b" " * LARGEST))) == LARGEST
    for bodies in ([b" " * (LARGEST + 1)], [b" " * LARGEST, b" "], [b" " * LARGEST, b"  ", b"never read"]):
        with pytest.raises(Refused) as caught:
            body_of(parts(*bodies))
        assert caught.value.status == 413


def sent(work):
    """What a piece of work writes, given an exchange."""
    written = []

    async def send(message):
        written.append(message)

    async def run():
        await work(Exchange(send, 0.0, lambda: None))

    asyncio.run(run())
    return written


def test_an_answer_is_json_with_its_length():
    async def work(exchange):
        exchange.headers = ((b"mcp-session-id", b"s"),)
        await send_json(exchange, response(1, {}), 404)

    start, body = sent(work)
    assert start["status"] == 404
    assert dict(start["headers"])[b"content-length"] == b"%d" % len(body["body"])
    assert dict(start["headers"])[b"mcp-session-id"] == b"s"


def test_after_events_the_answer_is_the_last_of_them():
    async def work(exchange):
        exchange.send(notification("n"))
        await send_json(exchange, response(1, {}), 404)
        await refuse(exchange, no(500, "too late"))

    start, *rest = sent(work)
    assert start["status"] == 200
    assert b'"result"' in rest[-1]["body"]
    assert b"too late" not in rest[-1]["body"]


def test_who_is_gone_is_told_nothing():
    async def work(exchange):
        exchange.give_up("lost", cancel=False)
        await send_json(exchange, response(1, {}))

    assert sent(work) == []


def test_what_is_answered_is_not_answered_twice():
    async def work(exchange):
        await send_json(exchange, response(1, {}))
        exchange.send(notification("n"))
        await asyncio.sleep(0)

    assert len(sent(work)) == 2


def test_nothing_is_an_answer_too():
    start, body = sent(lambda exchange: send_nothing(exchange, 202))
    assert (start["status"], body["body"]) == (202, b"")


def test_a_refusal_says_why_and_shows_no_session():
    async def work(exchange):
        exchange.headers = ((b"mcp-session-id", b"s"),)
        await refuse(exchange, Refused(400, RpcError(-32020, "Because."), 7))

    start, body = sent(work)
    assert start["status"] == 400
    assert b"mcp-session-id" not in dict(start["headers"])
    assert body["body"] == b'{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"Because."}}'


def test_who_has_to_wait_is_told_how_long():
    assert dict(busy("Slow.", 0.2).headers)[b"retry-after"] == b"1"
    assert dict(busy("Slow.", 61.3).headers)[b"retry-after"] == b"62"
    assert dict(too_large().headers)[b"connection"] == b"close"
