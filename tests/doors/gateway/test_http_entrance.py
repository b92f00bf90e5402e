"""Who comes in over HTTP, looked at before anything of a request is read."""

import asyncio
from types import SimpleNamespace

import pytest

from checkrein.doors.gateway.http_answers import Refused
from checkrein.doors.gateway.http_entrance import Entrance
from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.http_headers import Head
from checkrein.doors.gateway.tokens import Tokens
from checkrein.peers import Peer
from checkrein.settings.sources import state_dir
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.sqlite import SqliteStore
from checkrein.store.tokens import hash_of

PORT, MOST = 4711, 3
HOST = (b"host", b"127.0.0.1:4711")


@pytest.fixture
def token(home):
    """A client's token, on the store `entrance` looks at."""
    store = SqliteStore.open(state_dir())
    made_id, token = CLIENTS.new()
    made = GatewayClient(id=made_id, name="laptop", hash=hash_of(token), made_at=1.0, made_by="ada")
    store.write(lambda tx: CLIENTS.add(tx, made))
    yield SimpleNamespace(store=store, header=(b"authorization", f"Bearer {token}".encode()))
    store.close()


def entrance(token, per_minute=60, speaks=None):
    made = Entrance(Tokens(token.store, per_minute, lambda: 0.0), MOST, speaks)
    made.open(PORT)
    return made


def ask(door, *headers, path="/mcp", method="POST"):
    """One request; who was let in, and the line it came by."""
    line = SimpleNamespace(known=False)
    turn = SimpleNamespace(head=Head(method, path, [*headers]), task=None)
    return door.let_in(Exchange(turn, 0.0, lambda: None), line), line


def refused(door, *headers, **more):
    with pytest.raises(Refused) as found:
        ask(door, *headers, **more)
    return found.value.status


def test_a_token_lets_its_client_in_and_its_connection_is_known(token):
    holder, line = ask(entrance(token), HOST, token.header)
    assert (holder.name, holder.under_way, line.known) == ("laptop", 1, True)


def test_how_we_are_takes_no_token(token):
    assert ask(entrance(token), HOST, path="/health", method="GET")[0] is None
    assert refused(entrance(token), HOST, path="/health") == 404


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ([HOST], "/mcp", 401),
        ([HOST, (b"authorization", b"Bearer nobody")], "/mcp", 401),
        ([(b"host", b"evil.example:4711")], "/mcp", 403),
        ([], "/mcp", 403),
        ([HOST, (b"origin", b"http://evil.example")], "/health", 403),
        ([HOST, HOST], "/mcp", 400),
        ([HOST], "/elsewhere", 404),
    ],
)
def test_who_is_not_let_in_hears_why(token, headers, path, status):
    door, line = entrance(token), SimpleNamespace(known=False)
    assert refused(door, *headers, path=path, method="GET") == status
    assert not line.known


def test_a_client_has_so_many_under_way_and_so_many_a_minute(token):
    door = entrance(token)
    for _ in range(MOST):
        ask(door, HOST, token.header)
    assert refused(door, HOST, token.header) == 429
    door = entrance(token, per_minute=1)
    ask(door, HOST, token.header)
    assert refused(door, HOST, token.header) == 429


@pytest.mark.parametrize(("found", "speaks", "expected"), [(True, True, True), (True, False, False)])
def test_who_stands_behind_a_connection_is_looked_up_once(token, found, speaks, expected):
    looked = []
    door = entrance(token, speaks=lambda peer: looked.append(peer) or speaks)
    door.tcp_peers.find = lambda address, port: Peer(1, 0) if found and port == PORT else None
    line = SimpleNamespace(address=("127.0.0.1", 1), speaks=None)
    assert [asyncio.run(door.is_person(line)) for _ in range(2)] == [expected] * 2
    assert looked == [Peer(1, 0)]


def test_where_nobody_is_found_nobody_is_a_person(token):
    door = entrance(token, speaks=lambda peer: True)
    door.tcp_peers.find = lambda address, port: None
    assert not asyncio.run(door.is_person(SimpleNamespace(address=("127.0.0.1", 1), speaks=None)))
    assert not asyncio.run(door.is_person(None))
    assert asyncio.run(entrance(token).is_person(None))
