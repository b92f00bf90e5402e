"""What holds in one conversation: what its model is told first, whose rules, when older messages become a
summary. A field that is left empty gives the matter back to the model's own limits and the settings.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from starlette.responses import Response

from checkrein.console import choices, markdown
from checkrein.console.views import chat_shown
from checkrein.console.visits import Visit
from checkrein.doors.chat.compression import HIGHEST, LOWEST
from checkrein.errors import InputError
from checkrein.settings.project import project_of

Facts = dict[str, Any]
FIELDS = ("system", "project", "threshold", "retention_tokens", "auto_compress")
LOWEST_PERCENT, HIGHEST_PERCENT = f"{LOWEST * 100:g}", f"{HIGHEST * 100:g}"
MOST_TOKENS = 100_000_000
_PERCENT = re.compile(r"(\d{1,3}(?:[.,]\d{1,4})?) ?%?", re.ASCII)
_TOKENS = re.compile(r"\d{1,9}", re.ASCII)
_SWITCH = {"": None, "1": True, "0": False}


def show(visit: Visit) -> Response:
    session = _session(visit)
    return _form(visit, session, _written(session))


def keep(visit: Visit) -> Response:
    """Save all of it, or say at each field what is wrong with what stands there."""
    session = _session(visit)
    typed: Facts = {name: visit.form.text(name) for name in FIELDS}
    wanted, faults = _wanted(typed, session)
    if not faults:
        try:
            visit.desk.ask("chat.update", id=session["id"], **wanted)
        except InputError as error:
            faults = {"all": str(error)}
    if faults:
        return _form(visit, session, typed | {"system": chat_shown.as_given(typed["system"])}, faults)
    told = "The settings of this conversation are saved."
    return visit.page("_chat_done.html", text=told) if visit.piece else visit.back(_here(session), told)


def _session(visit: Visit) -> Facts:
    found: Facts = visit.desk.ask("chat.session", id=visit.named["id"], limit=1)["session"]
    return found


def _here(session: Facts) -> str:
    return f"/chat/{session['id']}"


def _form(visit: Visit, session: Facts, typed: Facts, faults: Facts | None = None) -> Response:
    return visit.page(
        "_chat_settings.html" if visit.piece else "chat_settings.html",
        400 if faults else 200,
        opened=session,
        typed=typed,
        faults=faults or {},
        usual=visit.desk.pipeline.policies.of("", "chat").settings.chat,
        projects=choices.projects(visit.desk.store),
        bounds=(LOWEST_PERCENT, HIGHEST_PERCENT),
        is_piece=visit.piece,
    )


def _written(session: Facts) -> Facts:
    """What is set, as a person would write it."""
    threshold, kept = session["threshold"], session["retention_tokens"]
    switch = {value: key for key, value in _SWITCH.items()}
    return {
        "system": chat_shown.plain(session["system"]),
        "project": session["project"],
        "threshold": "" if threshold is None else f"{round(threshold * 100, 4):g}",
        "retention_tokens": "" if kept is None else str(kept),
        "auto_compress": switch[session["auto_compress"]],
    }


def _wanted(typed: Facts, session: Facts) -> tuple[Facts, Facts]:
    """What the words in the fields mean, and what is wrong with those that mean nothing."""
    # What is shown with its misleading characters spelled out, and sent back so, is as it was.
    shown = markdown.readable(session["system"]).strip()
    wanted: Facts = {} if typed["system"] == shown else {"system": typed["system"]}
    faults: Facts = {}
    read = {
        "project": lambda text: _project(text, session["project"]),
        "threshold": _threshold,
        "retention_tokens": _tokens,
        "auto_compress": _switch,
    }
    for name, meaning in read.items():
        try:
            wanted[name] = meaning(typed[name])
        except InputError as error:
            faults[name] = str(error)
    return wanted, faults


def _project(text: str, before: str) -> str:
    # What stands there already may stay, also where the folder is gone.
    if not text or text == before:
        return text
    try:
        folder = Path(text).expanduser()
        is_there = folder.is_dir()
    except (OSError, RuntimeError, ValueError):
        raise InputError("This cannot be a folder.") from None
    if not folder.is_absolute():
        raise InputError("A folder is written from / on, as in /home/ada/plums.")
    if not is_there:
        raise InputError("There is no such folder on this machine.")
    return project_of(folder)


def _threshold(text: str) -> float | None:
    if not text:
        return None
    found = _PERCENT.fullmatch(text)
    share = Decimal(found[1].replace(",", ".")) / 100 if found else None
    if share is None or not LOWEST <= float(share) <= HIGHEST:
        raise InputError(f"From {LOWEST_PERCENT} to {HIGHEST_PERCENT} percent, or nothing.")
    return float(share)


def _tokens(text: str) -> int | None:
    if not text:
        return None
    if not _TOKENS.fullmatch(text) or int(text) > MOST_TOKENS:
        raise InputError(f"A whole number from 0 to {MOST_TOKENS:,}, without commas, or nothing.")
    return int(text)


def _switch(text: str) -> bool | None:
    if text not in _SWITCH:
        raise InputError("Yes, no, or as the settings say.")
    return _SWITCH[text]
