"""An MCP server that writes down every call it carries out, and who it is; made to be killed.

`counting_server.py FOLDER`: FOLDER/done has one line for each call, FOLDER/pids one for each process.
"""

import json
import os
import sys
import time
from pathlib import Path

TOOL = {
    "name": "do",
    "description": "Does one thing, once.",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
}


def write(path, line):
    """Whole or not at all, whoever else writes."""
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(opened, f"{line}\n".encode())
    os.close(opened)


def answer(message, folder):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        known = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        return {"result": {**known, "serverInfo": {"name": "counting", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        key = params["arguments"]["key"]
        write(folder / "done", key)
        if key.endswith("0"):
            # Carried out, not yet answered: the moment in which a kill leaves it unknown.
            time.sleep(0.002)
        return {"result": {"content": [{"type": "text", "text": f"did {key}"}]}}
    return {"result": {}} if method == "ping" else {"error": {"code": -32601, "message": "no such method"}}


def main():
    folder = Path(sys.argv[1])
    write(folder / "pids", os.getpid())
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            made = {"jsonrpc": "2.0", "id": message["id"], **answer(message, folder)}
            sys.stdout.buffer.write(json.dumps(made).encode() + b"\n")
            sys.stdout.buffer.flush()


main()
