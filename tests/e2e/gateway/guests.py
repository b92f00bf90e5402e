"""MCP clients made with the SDK, before the gateway: through the pump, or over HTTP with a token."""

import asyncio
import contextlib

# The SDK takes a second to import, and only these tests pay for it: it is imported where it is used.
from e2e.clients.house import BIN, PROGRAM

MODES = ("legacy", "auto", "2026-07-28")
SECONDS = 30.0


class Guest:
    """One client and everything it was asked and told."""

    def __init__(self, name="guest", *, says=None, asks=True, samples=True, roots=True, **extra):
        self.name, self.says = name, says or {}
        self.asked, self.logged, self.heard, self.sampled = [], [], [], []
        import mcp_types as types

        self.types = types
        self.callbacks = {
            "logging_callback": self._log,
            "message_handler": self._hear,
            "client_info": types.Implementation(name=name, version="1.0"),
            **({"elicitation_callback": self._elicit} if asks else {}),
            **({"sampling_callback": self._sample} if samples else {}),
            **({"list_roots_callback": self._roots} if roots else {}),
            **extra,
        }

    async def _elicit(self, context, params):
        self.asked.append(params)
        said = self.says(params) if callable(self.says) else self.says
        return self.types.ElicitResult.model_validate(said or {"action": "decline"})

    async def _sample(self, context, params):
        self.sampled.append(params)
        content = self.types.TextContent(type="text", text=f"{self.name}'s model")
        return self.types.CreateMessageResult(role="assistant", content=content, model="test")

    async def _roots(self, context):
        return self.types.ListRootsResult(roots=[self.types.Root(uri=f"file:///home/{self.name}")])

    async def _log(self, params):
        self.logged.append(params.data)

    async def _hear(self, message):
        self.heard.append(getattr(message, "method", type(message).__name__))


@contextlib.asynccontextmanager
async def connected(gate, guest, way="stdio", mode="auto"):
    """The guest's client, before the gateway of a house."""
    from mcp import Client

    async with (
        transport(gate, way) as made,
        asyncio.timeout(SECONDS),
        Client(made, mode=mode, read_timeout_seconds=SECONDS, **guest.callbacks) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def transport(gate, way):
    if way == "http":
        port, token = gate.token
        headers = {"Authorization": f"Bearer {token}"}
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers=headers, timeout=SECONDS) as web:
            yield streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=web)
    else:
        from mcp import StdioServerParameters

        compiled = [str(BIN / "checkrein-hook"), str(gate.door), "mcp"]
        command, *args = compiled if way == "stdio" else [str(PROGRAM), "mcp"]
        yield StdioServerParameters(command=command, args=args, env=gate.environment, cwd=str(gate.project))


def words(result):
    return "\n".join(each.text for each in result.content if each.type == "text")


async def soon(what, seconds=10.0):
    """Waits for what another task brings about."""
    async with asyncio.timeout(seconds):
        while not what():
            await asyncio.sleep(0.02)
