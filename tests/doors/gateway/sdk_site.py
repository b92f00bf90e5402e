"""The SDK's own MCP server behind the SDK's own authorization server, where nobody can register a client."""

import secrets
import socket
import threading
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from patience import until


class Memory:
    """What an authorization server of the SDK needs; redirects, scopes, PKCE and secrets it checks."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh, self.asked = {}, {}, {}, {}, []

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def authorize(self, client, params):
        self.asked.append(params)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 3600,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self._given(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refresh[token.token]
        return self._given(client, scopes, token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    def _given(self, client, scopes, resource):
        more = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        access, refresh = (secrets.token_urlsafe(16) for _ in range(2))
        self.access[access] = AccessToken(token=access, **more)
        self.refresh[refresh] = RefreshToken(token=refresh, **more)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes) or None
        )


class SdkSite:
    """Runs on a port of this machine while it is entered."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url, self.memory = f"{self.origin}/mcp", Memory()
        server = MCPServer(
            "garden",
            auth_server_provider=self.memory,
            auth=AuthSettings(
                issuer_url=self.origin,
                resource_server_url=self.url,
                validate_token_resource=True,
                required_scopes=["plants"],
                client_registration_options=ClientRegistrationOptions(
                    enabled=False, valid_scopes=["plants", "everything"]
                ),
            ),
        )

        @server.tool()
        def water(plant: str) -> str:
            return f"watered the {plant}"

        config = uvicorn.Config(server.streamable_http_app(), port=self.port, log_level="critical")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def knows(self, redirect_uri, *, method="client_secret_basic", scope="plants everything"):
        """Somebody registered this client on the provider's pages."""
        self.memory.clients["mine"] = OAuthClientInformationFull(
            client_id="mine",
            client_secret=None if method == "none" else "s3cret/+",
            redirect_uris=[redirect_uri],
            token_endpoint_auth_method=method,
            scope=scope,
        )

    def __enter__(self):
        self._thread.start()
        until(lambda: self._server.started)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()
