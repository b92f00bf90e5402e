"""The gateway one would make with the MCP SDK: its lowlevel server before its client, nothing judged.

`sdk_gateway.py stdio COMMAND ...` or `sdk_gateway.py PORT COMMAND ...`; over HTTP it answers in JSON, its
faster way.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from mcp import Client, StdioServerParameters
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server


def gateway(words: list[str]) -> Server:
    """One server behind, shared by every session."""
    held: dict[str, Client] = {}

    @contextlib.asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[dict]:
        async with Client(StdioServerParameters(command=words[0], args=words[1:]), mode="legacy") as client:
            held["client"] = client
            yield {}

    async def list_tools(ctx: object, params: object) -> object:  # noqa: ARG001
        return await held["client"].list_tools()

    async def call_tool(ctx: object, params: object) -> object:  # noqa: ARG001
        return await held["client"].call_tool(params.name, params.arguments)

    return Server("sdk", version="1.0", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool)


async def on_stdio(words: list[str]) -> None:
    made = gateway(words)
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())


def over_http(port: int, words: list[str]) -> None:
    import uvicorn

    made = gateway(words)
    app = made.streamable_http_app(json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    way, *rest = sys.argv[1:]
    asyncio.run(on_stdio(rest)) if way == "stdio" else over_http(int(way), rest)
