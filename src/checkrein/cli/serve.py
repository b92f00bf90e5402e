"""`checkrein serve | up | down | restart | logs`: the one process that decides and writes."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import click

from checkrein import knocking
from checkrein.cli.opening import json_option
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import NotFoundError, StoreError
from checkrein.runtime import log_file

_STOP_SECONDS = 10.0


@click.command()
@click.option("--on-demand", is_flag=True, hidden=True, help="Leave quietly when a server runs already.")
def serve(on_demand: bool) -> None:
    """Run the server in the foreground until Ctrl-C. Hooks start it by themselves when they need it."""
    from checkrein.server import serve as run

    run((lambda _: None) if on_demand else say, on_demand=on_demand)


@click.command()
@json_option
def up(as_json: bool) -> None:
    """Start the server in the background, if it does not run yet."""
    running = knocking.is_running()
    about = knocking.ask(knocking.start(), "server.about", {})
    if as_json:
        say_json({**about, "started": not running})
    else:
        state = "was running already" if running else "is running"
        say(f"Checkrein {about['version']} {state} (process {about['pid']}).")


@click.command()
def down() -> None:
    """Stop the server. The next hook starts it again."""
    connection = knocking.connect()
    if connection is None:
        say("No server is running.")
        return
    knocking.ask(connection, "server.stop", {})
    deadline = time.monotonic() + _STOP_SECONDS
    while knocking.is_running():
        if time.monotonic() > deadline:
            raise StoreError("The server did not stop in time.", remedy="See `checkrein logs`.")
        time.sleep(0.02)
    say("Stopped.")


@click.command()
@click.pass_context
def restart(ctx: click.Context) -> None:
    """Stop the server and start it again."""
    ctx.invoke(down)
    ctx.invoke(up, as_json=False)


@click.command()
@click.option("-n", "--lines", default=40, show_default=True, help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written, until Ctrl-C.")
def logs(lines: int, follow: bool) -> None:
    """Show the server's own log: starts, stops, trouble. Calls are in `checkrein audit`."""
    path = log_file()
    if not path.exists():
        raise NotFoundError("No server has run here yet.", remedy="Run `checkrein up`.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in deque(file, lines):
            say(plain(line.rstrip("\n")))
        while follow:
            line = file.readline()
            if line:
                say(plain(line.rstrip("\n")))
            else:
                time.sleep(0.2)
                follow = _still(path)


def _still(path: Path) -> bool:
    return path.exists()
