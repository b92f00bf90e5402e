"""Checkrein with one server behind its gateway, in a home of its own: what a person has set up beforehand."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.hooks import own_home
from checkrein import knocking
from checkrein.settings.sources import user_file

SERVER = "bench"
SETTINGS = "[gateway]\ncalls_per_minute = 100000000\n"


def ask(verb: str, /, **params: Any) -> Any:
    return knocking.ask(knocking.start(), verb, params)


@contextlib.contextmanager
def house(words: list[str], settings: str = SETTINGS) -> Iterator[Path]:
    """The server is added, running, accepted, and its tools are allowed."""
    with own_home() as project:
        Path.home().mkdir(exist_ok=True)
        user_file().write_text(settings)
        entry = {"command": words[0], "args": words[1:]}
        path = user_file().parent / "servers.json"
        path.write_text(json.dumps({"mcpServers": {SERVER: entry}}))
        path.chmod(0o600)
        ask("upstream.reload")
        deadline = time.monotonic() + 30
        while not (shown := ask("upstream.review", name=SERVER)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{words} offers nothing: {ask('upstream.list')}")
            time.sleep(0.05)
        picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in shown]
        ask("upstream.accept", name=SERVER, picks=picks)
        ask("rule.add", rule={"action": "allow", "server": SERVER, "pattern": "*"})
        yield project


def client(name: str) -> tuple[int, str]:
    """(port, token) of a client that comes over HTTP."""
    made = ask("client.add", name=name)
    return int(made["url"].split(":")[2].partition("/")[0]), made["token"]


def server_pid() -> int:
    return int(ask("server.about")["pid"])


def private_memory(pid: int) -> int:
    """Bytes only this process has."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
