"""`checkrein mcp`: what an MCP client starts to reach every configured server through the gateway.

Becomes the pump of the hook client: bytes between the client's standard streams and our server.
"""

from __future__ import annotations

import os

import click

from checkrein.errors import NotFoundError
from checkrein.hookclient import pump_words
from checkrein.runtime import door_file, read_door, write_door


@click.command()
def mcp() -> None:
    """Serve MCP on standard input and output. MCP clients run this; the server starts when it is needed."""
    try:
        read_door()
    except NotFoundError:
        # The first of all our programs here: the pump finds everything else through this file.
        write_door()
    words = pump_words(door_file())
    os.execv(words[0], words)  # noqa: S606 - our own program, no shell
