"""Draws docs/images/gateway.svg from real commands in a terminal of their own: `make picture`.

A server is added and accepted, a client calls it, a person says yes, and the server turns.
"""

from __future__ import annotations

import json
import subprocess

from capturing import draw, home, typed

ADD = ["servers", "add", "docs", "--", "python", "-m", "checkrein.cli.demo_server"]
# A page of this width has to hold what a server says.
WIDTH = 110


def call(tool: str, **arguments: str) -> None:
    """A client calls a tool, its person accepts, and it leaves once it hears that the tools changed."""
    from checkrein.hookclient import pump_words
    from checkrein.runtime import door_file

    with subprocess.Popen(
        pump_words(door_file()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as pump:

        def send(**message: object) -> None:
            pump.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")  # type: ignore[union-attr]
            pump.stdin.flush()  # type: ignore[union-attr]

        about = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {}}
        send(id=1, method="initialize", params=about)
        send(method="notifications/initialized")
        send(id=2, method="tools/call", params={"name": tool, "arguments": arguments})
        for line in pump.stdout:  # type: ignore[union-attr]
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], result={"action": "accept", "content": {}})
            elif message.get("method") == "notifications/tools/list_changed":
                break
        pump.stdin.close()  # type: ignore[union-attr]


def main() -> None:
    with home():
        parts = [typed(ADD, ("run it now?", "y"), ("n = not now", "y"))]
        call("docs__add_page", title="How refunds work")
        parts += [typed(["servers"]), typed(["servers", "review", "docs"])]
    draw("gateway.svg", "checkrein servers", parts, WIDTH)


main()
