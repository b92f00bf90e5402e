import asyncio
import socket

import pytest

from checkrein.doors.gateway.messages import (
    LARGEST,
    VERSION_KEY,
    encode,
    failure,
    notification,
    request,
    response,
)
from checkrein.doors.gateway.messages import RpcError as Error
from checkrein.doors.gateway.outside import Outside
from checkrein.doors.gateway.pipes import LOST, PipeError
from doors.gateway.site import Site

pytest.importorskip("mcp")
import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from checkrein.doors.gateway.http_client import GuardedTransport, KeptMessages, Stamp, from_wire, to_wire

MODERN = {VERSION_KEY: "2026-07-28"}


@pytest.mark.parametrize(
    "message",
    [
        request(1, "tools/call", {"name": "x", "_meta": {"a": None}, "odd": [1, {"b": 2.5}]}),
        request("a", "ping"),
        notification("notifications/x", {"y": 1}),
        notification("notifications/x"),
        response(1, {"content": [{"type": "new", "unknown": True}], "resultType": "complete"}),
        failure("a", Error(-32000, "No.", {"why": [1]})),
        failure(2, Error(-32601, "No.")),
    ],
)
def test_messages_come_through_as_they_are(message):
    kept = KeptMessages(pytest.fail)
    assert from_wire(to_wire(message, {}), kept) == message
    seen = jsonrpc_message_adapter.validate_json(kept.keep(encode(message)))
    assert from_wire(SessionMessage(seen), kept) == message


def test_an_answer_that_was_given_up_is_lost_and_not_an_error_of_the_server():
    given_up = failure(3, Error(-32000, "SSE stream ended without a response"))
    found = from_wire(to_wire(given_up, {}), KeptMessages(pytest.fail))
    assert set(found) == {"jsonrpc", "id", LOST} and found["id"] == 3


def test_the_older_era_says_its_version_once_it_is_agreed_on():
    stamp = Stamp()
    assert stamp.outgoing(request(1, "initialize", {"protocolVersion": "2025-11-25"})) == {}
    stamp.incoming(response(1, {"protocolVersion": "2025-03-26"}))
    for message in (notification("notifications/initialized"), request(2, "x", {}), response(9, {})):
        assert stamp.outgoing(message) == {"mcp-protocol-version": "2025-03-26"}


def test_a_version_that_is_none_becomes_no_header():
    stamp = Stamp()
    stamp.outgoing(request(1, "initialize", {}))
    stamp.incoming(response(1, {"protocolVersion": "1\r\nX-Evil: 1"}))
    assert stamp.outgoing(request(2, "x", {})) == {}


def test_the_younger_era_names_what_is_asked_and_mirrors_what_the_server_wants():
    stamp = Stamp()
    nested = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}
    schema = {"type": "object", "properties": {"where": nested}}
    call = {"name": "go", "arguments": {"where": {"zone": "a\r\nb"}}, "_meta": MODERN}
    plain = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "go"}
    assert stamp.outgoing(request(1, "tools/call", call)) == plain
    stamp.outgoing(request(2, "tools/list", {"_meta": MODERN}))
    stamp.incoming(response(2, {"tools": [{"name": "go", "inputSchema": schema}, {"name": 5}, "x", None]}))
    headers = stamp.outgoing(request(3, "tools/call", call))
    assert headers == plain | {"Mcp-Param-Zone": "=?base64?YQ0KYg==?="}
    assert stamp.outgoing(request(4, "tools/call", call | {"arguments": [1]})) == plain
    stamp.outgoing(request(5, "tools/list", {"_meta": MODERN}))
    stamp.incoming(response(5, {"tools": [{"name": "go", "inputSchema": {}}]}))
    assert stamp.outgoing(request(6, "tools/call", call)) == plain


def test_answers_nobody_asked_for_teach_nothing():
    stamp = Stamp()
    for result in ({"tools": 5}, {"protocolVersion": "2025-11-25"}, [], None, {}):
        stamp.incoming({"jsonrpc": "2.0", "id": 1, "result": result})
    stamp.outgoing(request(1, "tools/list", {}))
    stamp.incoming(response(1, {"tools": {"name": "x"}}))
    assert stamp.outgoing(request(2, "x", {})) == {}


def get(site, url, *, home=None, noticed=lambda *_: None):
    async def main():
        outside = Outside("x", home or site.url)
        transport = GuardedTransport(home or site.url, outside, noticed, KeptMessages(pytest.fail))
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            return await client.post(url, json=request(1, "huge" if "huge" in url else "echo", {}))

    return asyncio.run(main())


def test_a_name_is_connected_to_where_it_was_looked_up_and_is_still_called_by_its_name():
    with Site() as site:
        url = site.url.replace("127.0.0.1", "localhost")
        assert get(site, url, home=url).status_code == 200
        assert site.seen[0][2]["host"] == url.split("/")[2]


def test_what_may_not_be_connected_to_is_not():
    with Site() as site, pytest.raises(PipeError, match="inside"):
        get(site, site.url, home="https://93.184.216.34/mcp")
    assert site.seen == []


def test_answers_are_read_up_to_a_size():
    with Site() as site, pytest.raises(httpx2.StreamError, match=f"{LARGEST:,}"):
        get(site, f"{site.url}/huge")


def test_the_next_address_is_tried_when_nobody_is_at_the_first(monkeypatch):
    with Site() as site:

        def getaddrinfo(*_, **__):
            return [(0, 0, 0, "", (address, 0)) for address in ("127.0.0.9", "127.0.0.1")]

        url = site.url.replace("127.0.0.1", "two.example")
        outside = Outside("x", url)

        async def main():
            with monkeypatch.context() as patch:
                patch.setattr(socket, "getaddrinfo", getaddrinfo)
                assert await outside.addresses(url) == ["127.0.0.9", "127.0.0.1"]
            transport = GuardedTransport(url, outside, lambda *_: None, KeptMessages(pytest.fail))
            async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
                return await client.post(url, json=request(1, "echo", {}))

        assert asyncio.run(main()).status_code == 200


def test_the_status_of_the_servers_own_answers_is_noticed():
    found = []
    with Site(token="t") as site:
        get(site, site.url, noticed=lambda *each: found.append(each))
        get(site, f"{site.origin}/other", noticed=lambda *each: found.append(each))
    assert found == [(401, False)]
