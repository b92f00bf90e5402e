import os
import stat

import pytest

from checkrein.runtime import log_file
from checkrein.server import journal as journal_module
from checkrein.server.journal import Journal


@pytest.fixture
def path(home):
    log_file().parent.mkdir(parents=True)
    return log_file()


def test_a_line_is_shown_and_kept_with_its_time(path):
    shown = []
    Journal(shown.append).say("serving\non a\tsocket")
    assert shown == ["serving\non a\tsocket"]
    (line,) = path.read_text().splitlines()
    assert line.endswith(" serving on a socket")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_text_no_file_can_hold_is_kept_as_well_as_can_be(path):
    Journal(lambda _: None).say("from \ud800 afar")
    assert "from ? afar" in path.read_text()


def test_one_older_file_is_kept(path, monkeypatch):
    monkeypatch.setattr(journal_module, "LARGEST", 100)
    journal = Journal(lambda _: None)
    for number in range(12):
        journal.say(f"line {number}")
    assert sorted(each.name for each in path.parent.iterdir()) == ["server.log", "server.log.1"]
    assert "line 11" in path.read_text()


def test_a_closed_terminal_or_a_missing_folder_costs_the_line_only(home):
    def closed(_text):
        raise BrokenPipeError

    def finalised(_text):
        raise ValueError("I/O operation on closed file")

    Journal(closed, home / "no" / "such" / "folder.log").say("x")
    Journal(finalised, home / "a.log").say("kept all the same")
    assert "kept all the same" in (home / "a.log").read_text()


def test_a_link_is_not_followed_and_a_pipe_not_waited_for(path, home):
    (home / "precious").write_text("mine")
    path.symlink_to(home / "precious")
    Journal(lambda _: None).say("x")
    assert (home / "precious").read_text() == "mine"
    path.unlink()
    os.mkfifo(path)
    Journal(lambda _: None).say("x")


def test_a_line_names_no_secret(path):
    shown = []
    journal = Journal(shown.append)
    journal.say("a hook call failed: ValueError: docker login -p hunter2secret r.io")
    journal.mask_with(lambda line: line.replace("swordfish", "[masked]"))
    journal.say("a hook call failed: KeyError: 'swordfish'")
    assert "hunter2secret" not in path.read_text() + str(shown)
    assert "swordfish" not in path.read_text() + str(shown)
    assert len(shown) == 2
