"""How processes of ours talk over the Unix socket: frames with a length in front, a few header lines, a body.

Used by the server and by the command line; the hook client speaks the same in C.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time

import msgspec

from checkrein.errors import InputError

FORMAT = 1
LARGEST_PAYLOAD = 8 << 20
LARGEST_FRAME = LARGEST_PAYLOAD + 65_536
_LENGTH = struct.Struct(">I")
_ANSWER = struct.Struct(">BI")
_HEADER_LIMIT = 16_384
_AT_ONCE = 65_536
# What a hook client says that can be asked for its streams, and how it is asked: a frame of one byte.
STREAMS = "STREAMS"
_ASK_FOR_STREAMS = b"S"
_CLOSED_BY_EXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Request(msgspec.Struct, frozen=True):
    """What a client wants: who it is (`version`), its words (`hook claude-code gate 350`), the body."""

    version: str
    words: tuple[str, ...]
    facts: dict[str, str]
    body: bytes


class Gone(Exception):  # noqa: N818 - the other side closed, or took too long
    pass


def encode_request(version: str, words: tuple[str, ...], body: bytes) -> bytes:
    return f"checkrein {FORMAT} {version}\n{' '.join(words)}\n\n".encode() + body


def decode_request(frame: bytes) -> Request:
    """Header lines, an empty line, the body; anything else is refused with a sentence."""
    head, mark, body = frame.partition(b"\n\n")
    if not mark or len(head) > _HEADER_LIMIT:
        raise InputError("This is not a request of ours: its header does not end.")
    lines = head.decode("utf-8", "replace").split("\n")
    greeting = lines[0].split(" ")
    if len(greeting) != 3 or greeting[0] != "checkrein" or len(lines) < 2:
        raise InputError("This is not a request of ours: it does not begin with our name.")
    if greeting[1] != str(FORMAT):
        raise InputError(
            f"The client speaks format {greeting[1]}, this server {FORMAT}.",
            remedy="Run `checkrein restart`, and `checkrein install` again if that does not help.",
        )
    facts = dict(line.split("=", 1) for line in lines[2:] if "=" in line)
    return Request(greeting[2], tuple(lines[1].split(" ")), facts, body)


def encode_answer(stdout: bytes, stderr: bytes, exit_code: int) -> bytes:
    """The last frame of an answer to the hook client: what to print and how to end."""
    return _ANSWER.pack(exit_code, len(stdout)) + stdout + stderr


def decode_answer(frame: bytes) -> tuple[bytes, bytes, int]:
    exit_code, length = _ANSWER.unpack_from(frame)
    return frame[5 : 5 + length], frame[5 + length :], exit_code


def send(connection: socket.socket, frame: bytes) -> None:
    """One frame; an empty one says "still here"."""
    try:
        connection.sendall(_LENGTH.pack(len(frame)) + frame)
    except OSError as error:
        raise Gone(str(error)) from None


def receive(connection: socket.socket, deadline: float, *, alone: bool = False) -> bytes:
    """One whole frame before `deadline` (monotonic), or Gone; `alone` when none follows it."""
    ahead = _AT_ONCE if alone else 0
    head = _read(connection, b"", _LENGTH.size, deadline, ahead)
    (length,) = _LENGTH.unpack_from(head)
    if length > LARGEST_FRAME:
        raise InputError(f"A frame of {length:,} bytes is more than we take.")
    whole = _read(connection, head, _LENGTH.size + length, deadline, ahead)
    return whole[_LENGTH.size : _LENGTH.size + length]


def ask_for_streams(connection: socket.socket, deadline: float) -> list[int]:
    """A hook client's standard input and output; the caller closes them. Nothing where they do not come.

    They are asked for, and do not come with the request: a server that hangs would keep the agent's end open.
    """
    send(connection, _ASK_FOR_STREAMS)
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        _, passed, _, _ = socket.recv_fds(connection, 1, 2, _CLOSED_BY_EXEC)
    except OSError as error:
        raise Gone(str(error)) from None
    if not _CLOSED_BY_EXEC:
        for each in passed:
            os.set_inheritable(each, False)
    return passed


def close_all(descriptors: list[int]) -> None:
    """Close descriptors that were passed to us; none is closed twice."""
    while descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptors.pop())


def _read(connection: socket.socket, have: bytes, count: int, deadline: float, ahead: int) -> bytes:
    """`count` bytes; up to `ahead` more when they are there, so that a small frame takes one look."""
    parts, size = [have], len(have)
    while size < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Gone("it took too long")
        connection.settimeout(left)
        try:
            part = connection.recv(max(ahead, min(count - size, 1 << 20)))
        except OSError as error:
            raise Gone(str(error)) from None
        if not part:
            raise Gone("the connection was closed")
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def is_open(connection: socket.socket) -> bool:
    """Whether the other side is still there and waits. Never blocks, whatever time limit the socket has."""
    look = select.poll()
    try:
        look.register(connection, select.POLLIN)
    except (OSError, ValueError):
        return False
    # Ours send nothing after their request: what can be read is the end, or somebody else's nonsense.
    return not look.poll(0)
