"""A small MCP server on standard input and output that says what a file says, also when that changes."""

import json
import shlex
import sys

NOTES = r"""
import json, os, sys, threading, time
def put(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
def watch():
    before = os.stat(sys.argv[1]).st_mtime_ns
    while True:
        time.sleep(0.02)
        now = os.stat(sys.argv[1]).st_mtime_ns
        if now != before:
            before = now
            put({"method": "notifications/tools/list_changed"})
said = json.load(open(sys.argv[1]))
sys.stderr.write(said.get("stderr", "")); sys.stderr.flush()
while "gate" in said and not os.path.exists(said["gate"]):
    time.sleep(0.01)
if "exit" in said:
    sys.exit(said["exit"])
threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    said = json.load(open(sys.argv[1]))
    if number is None or method is None:
        continue
    if method == "initialize":
        put({"id": number, "result": {"protocolVersion": "2025-11-25", "serverInfo": said["info"],
             "capabilities": {"tools": {"listChanged": True}}, "instructions": said.get("instructions", "")}})
    elif method == "tools/list":
        put({"id": number, "result": {"tools": said["tools"]}})
    elif method == "ping":
        put({"id": number, "result": {}})
    else:
        put({"id": number, "error": {"code": -32601, "message": "unknown"}})
"""
READ = {
    "name": "read_note",
    "description": "Reads one note.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
    "annotations": {"readOnlyHint": True},
}
DROP = {"name": "drop_note", "description": "Deletes a note.", "inputSchema": {"type": "object"}}


class Notes:
    """The program of a small server, and the file it reads what to say from."""

    def __init__(self, folder):
        self.program, self.said = folder / "notes.py", folder / "notes.json"
        self.program.write_text(NOTES, encoding="utf-8")
        self.says(tools=[READ, DROP])

    def says(self, **what):
        whole = {"info": {"name": "notebook", "version": "1.2"}, "tools": [], **what}
        fresh = self.said.with_suffix(".new")
        fresh.write_text(json.dumps(whole), encoding="utf-8")
        fresh.replace(self.said)

    @property
    def words(self):
        return [sys.executable, "-I", "-S", str(self.program), str(self.said)]

    @property
    def line(self):
        return shlex.join(self.words)
