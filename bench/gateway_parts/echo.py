"""A raw MCP server on stdio with one tool, for where no real one is installed: `echo`."""

from __future__ import annotations

import json
import sys

TOOL = {
    "name": "echo",
    "description": "Says the same again.",
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}
INFO = {"name": "echo", "version": "1.0"}


def answer(message: dict) -> dict:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            words = f"Echo: {message['params']['arguments']['message']}"
            return {"result": {"content": [{"type": "text", "text": words}]}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            made = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
            sys.stdout.buffer.write(json.dumps(made).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
