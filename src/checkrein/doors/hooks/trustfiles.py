"""A project's trust as a v2 `trust-scores.json`, written when an agent stops; `trust import` reads it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec

from checkrein import earning
from checkrein.ledger.mirror import default_folder
from checkrein.pipeline import Pipeline
from checkrein.policy.trustfile import render
from checkrein.settings.sources import state_dir

FILE = "trust-scores.json"


def path_for(project: str) -> Path:
    return (
        default_folder(project, state_dir()).parent.parent
        / "trust"
        / default_folder(project, Path()).name
        / FILE
    )


def write(pipeline: Pipeline, project: str) -> Path:
    """The file, whole or not at all; one that cannot be written costs nothing else: trust is in the store."""
    settings = pipeline.policies.of(project).settings
    book = earning.book(pipeline.store, project, settings)
    content = msgspec.json.format(
        msgspec.json.encode(render(book.states, settings.trust.initial_score, pipeline.clock())), indent=2
    )
    path = path_for(project)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _put(path, content + b"\n")
    return path


def _put(path: Path, content: bytes) -> None:
    handle, part = tempfile.mkstemp(prefix=".trust-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise
