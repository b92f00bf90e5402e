"""The MCP SDK, and servers of it in this process and in one of their own."""

import contextlib
import sys

import mcp_types as types
from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server

from checkrein.doors.library.adapters.mcp_session import GatedSession

SCHEMA = {"type": "object", "additionalProperties": True}


STDIO = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("garden")

@server.tool()
def water(bed: str, litres: int = 1) -> str:
    with open(sys.argv[1], "a") as file:
        file.write(f"{bed} {litres}\\n")
    return f"{bed} has {litres}"

server.run()
"""


class House:
    """A server in this process: every tool it is told to have, and what they did."""

    def __init__(self, *names, hints=None):
        self.did, self.hints, self.description = [], hints, "A tool."
        self.names = names or ("water", "dig", "ask_back")
        self.server = Server("garden", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _ctx, params):
        # One tool to a page.
        at = int(params.cursor) if params is not None and params.cursor else 0
        hints = types.ToolAnnotations(**self.hints) if self.hints else None
        tool = types.Tool(
            name=self.names[at], description=self.description, input_schema=SCHEMA, annotations=hints
        )
        following = str(at + 1) if at + 1 < len(self.names) else None
        return types.ListToolsResult(tools=[tool], next_cursor=following)

    async def _call(self, _ctx, params):
        given = params.arguments or {}
        self.did.append((params.name, given))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=f"{params.name} done")],
            is_error=params.name == "dig",
        )

    @contextlib.asynccontextmanager
    async def session(self, gate, **options):
        options.setdefault("server", "garden")
        async with Client(self.server) as client:
            yield GatedSession(gate, client.session, **options)


def text(result):
    return result.content[0].text


async def over_stdio(gate, file, work):
    parameters = StdioServerParameters(command=sys.executable, args=["-c", STDIO, file])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await work(GatedSession(gate, session, server="garden"))
