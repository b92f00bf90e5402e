"""An MCP server on standard input and output: says back what it is called with, offers things to attach."""

import json
import sys

HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    "'\"`${hacked=3} \x1b[31mred\u202egnp.exe"
)
# One white point.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=="
PROGRAM = r"""
import json, sys, time
hostile, dot = json.load(open(sys.argv[1]))
read = {"readOnlyHint": True}
schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
tools = [{"name": "read_note", "description": "Reads a note.", "inputSchema": schema, "annotations": read},
         {"name": "write_note", "description": "Writes a note.", "inputSchema": schema},
         {"name": "delete_note", "description": "Deletes everything.", "inputSchema": {"type": "object"},
          "annotations": {"destructiveHint": True}},
         {"name": "nasty", "description": hostile, "inputSchema": {"type": "object"}, "annotations": read}]
def called(params):
    name, given = params["name"], params.get("arguments") or {}
    if name == "nasty":
        return {"content": [{"type": "text", "text": hostile + " " + "y" * 30000},
            {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"},
            {"type": "image", "mimeType": "image/png", "data": "\"><script>window.hacked=4</script>"},
            {"type": "image", "mimeType": "image/png", "data": dot}]}
    time.sleep(float(given.get("wait", 0)))
    return {"content": [{"type": "text", "text": name + " got " + json.dumps(given)}]}
def prompted(params):
    text = "Tell me about " + params.get("arguments", {}).get("topic", "")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
found = {
    "initialize": lambda p: {"protocolVersion": "2025-11-25", "serverInfo": {"name": "echo", "version": "1"},
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}}},
    "tools/list": lambda p: {"tools": tools}, "ping": lambda p: {}, "tools/call": called,
    "resources/list": lambda p: {"resources": [{"uri": "note://plum", "name": "plum"}]},
    "resources/templates/list": lambda p: {"resourceTemplates": [
        {"uriTemplate": "fruit://{kind}{?year}", "name": "fruit"}]},
    "resources/read": lambda p: {"contents": [{"uri": p["uri"], "text": "plums are blue"}]},
    "prompts/list": lambda p: {"prompts": [
        {"name": "about", "arguments": [{"name": "topic", "required": True}]}]},
    "prompts/get": prompted}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    make = found.get(message["method"])
    unknown = {"error": {"code": -32601, "message": "unknown"}}
    body = {"result": make(message.get("params") or {})} if make else unknown
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""


def words(folder):
    """What starts it."""
    program, said = folder / "echo.py", folder / "echo.json"
    program.write_text(PROGRAM, encoding="utf-8")
    said.write_text(json.dumps([HOSTILE, DOT]), encoding="utf-8")
    return [sys.executable, "-I", "-S", str(program), str(said)]
