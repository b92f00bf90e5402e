"""The project a client's calls belong to: the first folder among its roots, asked for once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from checkrein.doors.gateway.clients import DEFAULT_PROJECT, Client, Flight
from checkrein.doors.gateway.messages import STATELESS, RpcError
from checkrein.settings.project import project_of

_SECONDS = 2.0


async def project(client: Client, flight: Flight) -> str:
    """Ask on the stream of the request that needs it first; the answer holds until the roots change."""
    if client.era == STATELESS or not client.can("roots"):
        return DEFAULT_PROJECT
    if client.project is None:
        client.project = asyncio.ensure_future(_asked(client, flight))
    elif client.project.done():
        return client.project.result()
    return await asyncio.shield(client.project)


async def _asked(client: Client, flight: Flight) -> str:
    try:
        async with asyncio.timeout(_SECONDS):
            found = await client.ask("roots/list", {}, flight)
    except (RpcError, TimeoutError):
        return DEFAULT_PROJECT
    roots = found.get("roots") if isinstance(found, dict) else None
    paths = (_path(each) for each in (roots if isinstance(roots, list) else []))
    return next((project_of(path) for path in paths if path), DEFAULT_PROJECT)


def _path(root: Any) -> str:
    """The folder a root names; nothing where it names none."""
    uri = root.get("uri") if isinstance(root, dict) else None
    try:
        path = unquote(urlsplit(uri).path) if isinstance(uri, str) and uri.startswith("file://") else ""
        return path if path.startswith("/") and Path(path).is_dir() else ""
    except (ValueError, OSError):
        return ""
