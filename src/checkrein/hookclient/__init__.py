"""The program hooks and MCP clients run: which one is installed here, and the command line that runs it.

Written by `checkrein install`; client.c and client.py are the program itself and know nothing of Checkrein.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from pathlib import Path

PROGRAM = "checkrein-hook"
GATE = "gate"
MCP = "mcp"


def client_path() -> Path | None:
    """The compiled client of this environment, if it has one."""
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        found = folder / PROGRAM
        if found.is_file() and os.access(found, os.X_OK):
            return found
    return None


def client_words() -> list[str]:
    """The client as the first words of a command line; the Python one where none was compiled."""
    compiled = client_path()
    if compiled:
        return [str(compiled)]
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("client.py"))]


def pump_words(door: Path) -> list[str]:
    """The command line of an MCP client's server: bytes between its standard streams and our gateway."""
    return [*client_words(), str(door), MCP]


def client_command(door: Path, agent: str, mode: str, seconds: int) -> str:
    """The line for an agent's settings, quoted for a POSIX shell."""
    line = shlex.join([*client_words(), str(door), agent, mode, str(seconds)])
    # INVARIANT: a client that cannot even start refuses; agents take any other code but 2 for an agreement.
    return f"{line} || exit 2" if mode == GATE else line
