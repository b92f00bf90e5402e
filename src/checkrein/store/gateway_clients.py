"""Who may come in over HTTP: added, found, revoked."""

from __future__ import annotations

from checkrein.store.tokens import Holder, TokenTable


class GatewayClient(Holder, frozen=True, kw_only=True):
    """Somebody who speaks MCP to the gateway."""


CLIENTS = TokenTable(
    GatewayClient, "gateway_client", prefix="ckrein", noun="client", command="checkrein clients"
)
