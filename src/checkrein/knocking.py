"""Talks to the server from another process of ours: connect, ask a verb, start it when it is not there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from checkrein import __version__, errors, wire
from checkrein.errors import CheckreinError, InputError, NotFoundError, StoreError
from checkrein.peers import peer_of
from checkrein.runtime import log_file, read_door, server_environment

_SERVER = (sys.executable, "-I", "-m", "checkrein", "serve", "--on-demand")
ANSWER_SECONDS = 30.0
START_SECONDS = 10.0


def connect() -> socket.socket | None:
    """A connection to this user's server; None when none is running."""
    try:
        path = read_door().socket
    except NotFoundError:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    if peer_of(connection).uid != os.geteuid():
        connection.close()
        raise StoreError(f"{path} belongs to another user's server.", remedy="Remove it; run `checkrein up`.")
    return connection


def ask(connection: socket.socket, verb: str, params: dict[str, Any], seconds: float = ANSWER_SECONDS) -> Any:
    """What the server answers to a verb; its errors are raised here as they were there."""
    with connection:
        try:
            connection.settimeout(seconds)
            body = msgspec.json.encode(params)
            wire.send(connection, wire.encode_request(__version__, ("verb", verb), body))
            answer = msgspec.json.decode(_last_frame(connection, seconds))
        except (wire.Gone, msgspec.MsgspecError) as error:
            raise StoreError(
                f"The server did not answer: {error}.", remedy="Run `checkrein doctor`."
            ) from None
    if "error" in answer:
        raise _raised(answer)
    return answer["value"]


def start(seconds: float = START_SECONDS) -> socket.socket:
    """A connection, to a new server if need be."""
    found = connect()
    if found is not None:
        return found
    # The shell ends at once, so that the server is nobody's child.
    subprocess.run(  # noqa: S603 - fixed words
        ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *_SERVER],
        start_new_session=True,
        cwd="/",
        env=_environment(),
        check=False,
    )
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = connect()
        if found is not None:
            return found
        time.sleep(0.01)
    raise StoreError("The server did not start.", remedy=f"See {log_file()}, or run `checkrein serve`.")


def _environment() -> dict[str, str]:
    """What the door file says a server is started with; whoever starts it has no say in it."""
    try:
        return read_door().environment
    except NotFoundError:
        return server_environment()


def is_running() -> bool:
    found = connect()
    if found is not None:
        found.close()
    return found is not None


def socket_exists() -> bool:
    try:
        return Path(read_door().socket).exists()
    except NotFoundError:
        return False


def _last_frame(connection: socket.socket, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    while not (frame := wire.receive(connection, deadline)):
        deadline = time.monotonic() + seconds
    return frame


def _raised(answer: dict[str, Any]) -> CheckreinError:
    kind = getattr(errors, answer["error"], None)
    if not isinstance(kind, type) or kind is errors.ConfigError or not issubclass(kind, CheckreinError):
        kind = InputError
    raised: CheckreinError = kind(answer["message"], remedy=answer["remedy"])
    return raised
