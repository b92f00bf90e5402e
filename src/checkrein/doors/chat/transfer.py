"""Conversations in a file: JSON holds everything of one, Markdown what a reader wants of the branch shown.

What is read back may be anybody's: it is refused in plain words, with nothing written, or kept whole.
"""

from __future__ import annotations

import msgspec

from checkrein.doors.chat import Invocation, Message, Run, Session, Snapshot, markdown
from checkrein.doors.chat.bundles import Bundle, gathered, keep, renewed
from checkrein.doors.chat.rows import clean
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import InputError

FORMAT, VERSION = "checkrein.chat", 1
LARGEST = 64 * 1024 * 1024


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    version: int
    session: Session
    messages: list[Message]
    runs: list[Run]
    calls: list[Invocation]
    snapshots: list[Snapshot]


class _Opening(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


def export_json(sessions: Sessions, id: str) -> str:  # noqa: A002 - the word of the value
    """Everything of a session: branches, calls, summaries, attachments."""
    whole = gathered(sessions, id)
    parts = {name: getattr(whole, name) for name in whole.__struct_fields__}
    text = msgspec.json.encode(_File(format=FORMAT, version=VERSION, **parts))
    return msgspec.json.format(text, indent=1).decode()


def import_json(sessions: Sessions, text: str) -> Session:
    """A session like the one that was exported, under ids of its own; nothing of it is under way."""
    given = _read(_sized(text))
    whole = Bundle(**{name: getattr(given, name) for name in Bundle.__struct_fields__})
    return keep(sessions, renewed(whole, sessions.clock()))


def export_markdown(sessions: Sessions, id: str) -> str:  # noqa: A002 - the word of the value
    """The branch that is shown, for reading."""
    session = sessions.get(id)
    return markdown.written(session, sessions.path(id))


def import_markdown(sessions: Sessions, text: str) -> Session:
    """What `export_markdown` wrote, as what the person and the model said."""
    now = sessions.clock()
    title, said = markdown.read(clean(_sized(text)))
    messages = [
        Message(f"m{number}", role, parts, number, parent=f"m{number - 1}" if number else "", created_at=now)
        for number, (role, parts) in enumerate(said)
    ]
    head = messages[-1].id
    session = Session(id="", title=title, created_at=now, updated_at=now, head=head)
    return keep(sessions, renewed(Bundle(session=session, messages=messages), now))


def _sized(text: str) -> str:
    if len(text) > LARGEST:
        raise InputError(f"The file is too large: over {LARGEST // 1024 // 1024} MB.")
    return text


def _read(text: str) -> _File:
    try:
        data = text.encode()
        opening = msgspec.json.decode(data, type=_Opening)
        if opening.format != FORMAT:
            raise InputError("This is no exported conversation.", remedy=f'Its `format` is not "{FORMAT}".')
        if opening.version != VERSION:
            raise InputError(
                f"The file is of version {opening.version}, this Checkrein reads version {VERSION}.",
                remedy="Upgrade Checkrein.",
            )
        return msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise InputError(f"The file cannot be read: {str(error)[:200]}.") from error
