"""The port on loopback: there while somebody has a token for it."""

import asyncio
import errno
import socket

import pytest

from checkrein.agents import Agents
from checkrein.doors.gateway import front_http
from checkrein.doors.gateway.http_port import HttpPort
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.tokens import hash_of
from mcp_http import PlayingHub


@pytest.fixture
def said():
    return []


@pytest.fixture
def port(pipeline, said, unused_port, user_settings):
    user_settings(f"[gateway]\nhttp_port = {unused_port}\n")
    return HttpPort(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), said.append)


@pytest.fixture
def token(pipeline):
    def give(name="laptop"):
        made_id, made = CLIENTS.new()
        holder = GatewayClient(id=made_id, name=name, hash=hash_of(made), made_at=1.0, made_by="ada")
        pipeline.store.write(lambda tx: CLIENTS.add(tx, holder))
        return made_id

    return give


def is_open(number):
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", number)) != errno.ECONNREFUSED


def test_it_is_open_while_somebody_has_a_token(port, pipeline, token, unused_port, said):
    async def main():
        hub = PlayingHub()
        await port.look(hub)
        assert (port.port, port.busy, is_open(unused_port), said) == (None, 0, False, [])
        token()
        await port.look(hub)
        assert port.port == unused_port and is_open(unused_port)
        await port.look(hub)
        assert said == [f"/mcp on 127.0.0.1:{unused_port}"]
        pipeline.store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 2.0))
        await port.look(hub)
        assert port.port is None and not is_open(unused_port)

    asyncio.run(main())


def test_it_is_closed_where_no_port_is_meant(port, token, user_settings, unused_port):
    user_settings("[gateway]\nhttp_port = 0\n")

    async def main():
        token()
        await port.look(PlayingHub())
        assert port.port is None and not is_open(unused_port)

    asyncio.run(main())


def test_one_that_cannot_be_opened_is_said_and_tried_again(port, token, said, monkeypatch):
    async def taken(*_):
        raise OSError("no room")

    async def main():
        token()
        with monkeypatch.context() as patched:
            patched.setattr(front_http.HttpFront, "open", taken)
            await port.look(PlayingHub())
        assert (port.port, said) == (None, ["/mcp cannot be opened: no room"])
        await port.look(PlayingHub())
        assert port.port
        await port.close()
        await port.close()

    asyncio.run(main())


def test_while_it_is_closed_there_is_nothing_to_take_back(port, token):
    port.revoke(f"http:{token()}")
    assert port.port is None
