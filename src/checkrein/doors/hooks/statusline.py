"""One line for the agent's status bar: the phase, the trust of the busiest domains, what waits."""

from __future__ import annotations

import msgspec

from checkrein import earning
from checkrein.doors.hooks.replies import Reply
from checkrein.pipeline import Pipeline
from checkrein.policy.phases import STRICTEST
from checkrein.settings.project import project_of
from checkrein.store.questions import waiting

_BUSIEST = 3


class _Place(msgspec.Struct):
    project_dir: str = ""
    current_dir: str = ""


class _Status(msgspec.Struct):
    """What the agent says about itself; everything may be missing."""

    session_id: str = ""
    cwd: str = ""
    workspace: _Place = msgspec.field(default_factory=_Place)


def render(pipeline: Pipeline, body: bytes) -> Reply:
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.MsgspecError, RecursionError):
        status = _Status()
    folder = status.workspace.project_dir or status.cwd
    return Reply(stdout=f"{line(pipeline, _project(folder), status.session_id)}\n".encode())


def _project(folder: str) -> str:
    """The folder's project; none for a name no folder can have."""
    try:
        return project_of(folder) if folder.startswith("/") else ""
    except (OSError, ValueError):
        return ""


def line(pipeline: Pipeline, project: str, session: str) -> str:
    """`checkrein building · file_read 0.62 · test_run 0.48 · 1 question waits`"""
    settings = pipeline.policies.of(project).settings
    book = earning.book(pipeline.store, project, settings)
    scores = book.scores(earning.model_for(settings), pipeline.clock())
    busiest = sorted(book.states, key=lambda name: -book.states[name].total_operations)[:_BUSIEST]
    parts = [f"checkrein {pipeline.phase_of(project, session) or STRICTEST}"]
    parts += [
        f"{domain} {scores.of(domain):.2f}" for domain in busiest if book.states[domain].total_operations
    ]
    open_questions = len(waiting(pipeline.store))
    if open_questions:
        parts.append(
            f"{open_questions} question{'s wait' if open_questions > 1 else ' waits'}: checkrein inbox"
        )
    if pipeline.ledger.broken:
        parts.append("the record does not verify")
    # A domain may carry the name of somebody's server: nothing in it moves, colours or breaks the line.
    return "".join(each if each.isprintable() else "?" for each in " · ".join(parts))
