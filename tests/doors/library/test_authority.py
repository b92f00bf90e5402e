"""Whoever decides for a gate: each can do all that a call's way asks of it, and has its place."""

import inspect

import pytest

from checkrein import Gate
from checkrein.doors.library.authority import Authority
from checkrein.doors.library.embedded import Embedded
from checkrein.doors.library.remote import Remote
from checkrein.errors import StoreBusyError
from checkrein.settings.sources import state_dir

ASKED = [name for name, each in vars(Authority).items() if inspect.isfunction(each) and name[0] != "_"]


@pytest.mark.parametrize("kind", [Embedded, Remote])
def test_every_authority_is_asked_in_the_same_words(kind):
    assert {"first", "wait", "take", "finish", "answer"} <= set(ASKED)
    for name in ASKED:
        wanted, found = (inspect.signature(getattr(each, name)).parameters for each in (Authority, kind))
        assert dict(found) == dict(wanted), name


def test_a_folder_belongs_to_one_program_at_a_time(room, monkeypatch):
    monkeypatch.setattr("checkrein.doors.library.embedded.LOCK_SECONDS", 0.05)
    room.open()
    with pytest.raises(StoreBusyError, match="a folder of its own"):
        Gate(room.folder)


def test_without_a_folder_each_agent_has_one_of_its_own(home):
    with Gate(agent="bot/1") as gate:
        assert gate.authority.folder == state_dir() / "library" / "bot_1"
        assert gate.pending() == []
