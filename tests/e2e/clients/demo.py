"""A tiny MCP server on stdio, for agents: `echo` says what it is given, `boom` always fails."""

import json
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "description": "Says it again", "inputSchema": TEXT},
    {"name": "boom", "description": "Always fails", "inputSchema": {"type": "object", "properties": {}}},
]


def answer(method, given):
    if method == "initialize":
        version = given.get("protocolVersion", "2025-06-18")
        about = {"name": "demo", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = (given.get("arguments") or {}).get("text", "it went boom")
        failed = given["name"] == "boom"
        return {"content": [{"type": "text", "text": text}], **({"isError": True} if failed else {})}
    return None


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        reply = {"jsonrpc": "2.0", "id": asked["id"]}
        result = answer(asked.get("method"), asked.get("params") or {})
        if result is None:
            reply["error"] = {"code": -32601, "message": "There is no such method."}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
