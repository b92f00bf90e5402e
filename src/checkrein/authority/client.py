"""Clients of the gateway over HTTP: a person gives each a token of its own, sees who has one, takes it back.

`cli.clients` and the console ask. A token is shown once, to whoever asked for it, and recorded nowhere.
"""

from __future__ import annotations

import time
from typing import Any, Protocol, cast

from checkrein.authority import Asked, Params, holders, verb
from checkrein.errors import InputError
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.tokens import hash_of

# The gateway opens its port when the first token is there; this long it may take.
_OPEN_SECONDS, _LOOK_SECONDS = 5.0, 0.02


class Listening(Protocol):
    """The running gateway, as far as its port goes: none while nobody has a token."""

    @property
    def http_port(self) -> int | None: ...


def shown(client: GatewayClient, connected: int) -> dict[str, Any]:
    """A client as people read it."""
    return {**holders.shown(client), "connected": connected}


@verb("client.add", person=True)
def add(asked: Asked, params: Params) -> dict[str, Any]:
    """{"name"}: a new client: its token, the address, and settings any MCP client understands."""
    name = holders.named(params["name"], "client", "checkrein clients add laptop")
    pipeline = asked.pipeline
    port = pipeline.policies.of("", "gateway").settings.gateway.http_port
    if not port:
        raise InputError(
            "The gateway is not to be reached over HTTP: `gateway.http_port` is 0.",
            remedy="Give it a port, 7330 for example.",
        )
    made_id, token = CLIENTS.new()
    made = GatewayClient(
        id=made_id, name=name, hash=hash_of(token), made_at=pipeline.clock(), made_by=asked.actor
    )
    # INVARIANT: the record says who may come in, and never with what.
    data = {"id": made_id, "name": name, "actor": asked.actor}
    pipeline.note("client_added", data, lambda tx: CLIENTS.add(tx, made))
    url = _address(asked, port)
    return {
        **shown(made, 0),
        "token": token,
        "url": url,
        "settings": {
            "mcpServers": {
                "checkrein": {
                    "type": "http",
                    "url": url,
                    "headers": {"Authorization": f"Bearer {token}"},
                }
            }
        },
    }


def _address(asked: Asked, port: int) -> str:
    """Where the gateway listens: as soon as it does, else where it is meant to."""
    if asked.gateway is not None:
        gateway, until = cast("Listening", asked.gateway()), time.monotonic() + _OPEN_SECONDS
        while not gateway.http_port and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        port = gateway.http_port or port
    return f"http://127.0.0.1:{port}/mcp"


@verb("client.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:
    """{"revoked"?}: everybody with a token; with `revoked` also those that had one."""
    read = CLIENTS.all if params.get("revoked") is True else CLIENTS.living
    there = [each.get("owner") for each in asked.gateway().clients()] if asked.gateway is not None else []
    return [shown(each, there.count(f"http:{each.id}")) for each in read(asked.pipeline.store)]


@verb("client.revoke", person=True)
def revoke(asked: Asked, params: Params) -> dict[str, Any]:
    """{"name"}: by name or id: its token opens nothing any more, and what it does here ends at once."""
    gone = holders.take_back(asked, CLIENTS, str(params["name"]), "client_revoked")
    if asked.gateway is not None:
        asked.gateway().revoke(f"http:{gone.id}")
    return shown(gone, 0)
