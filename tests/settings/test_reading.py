"""Files that somebody saves at the very moment they are read: what is half written is not believed."""

import os
from types import SimpleNamespace

import pytest

from checkrein.errors import ConfigError
from checkrein.settings import reading
from checkrein.settings.sources import load, user_file

OLD = b"# what we agreed on\n[approval]\nmost_waiting = 5\n"
NEW = OLD.replace(b"5", b"7") + b"# one more line\n"
SAVING = {
    "emptied and written": [b"", NEW],
    "in pieces": [b"", NEW[:15], NEW[:30], NEW],
    "written over in pieces": [NEW[:15], NEW],
    "moved away and made anew": [None, NEW],
    "moved away and made anew in pieces": [None, b"", NEW[:15], NEW],
}


class Editor:
    """Saves a file step by step, in the time the reader waits; its clock is the reader's."""

    def __init__(self, path, monkeypatch):
        self.path, self.now, self.waits, self.steps = path, 1_000_000.0, [], iter(())
        clock = SimpleNamespace(time=self.time, monotonic=self.time, sleep=self.sleep)
        monkeypatch.setattr(reading, "time", clock)

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.waits.append(seconds)
        self.step()

    def begin(self, steps):
        self.steps = iter(steps)
        self.step()

    def step(self):
        for content in self.steps:
            self.put(content)
            return

    def put(self, content, *, at=None):
        self.path.unlink(missing_ok=True)
        if content is not None:
            self.path.write_bytes(content)
            os.utime(self.path, (at or self.now, at or self.now))

    def leave_alone(self):
        self.now += 60
        self.waits.clear()


@pytest.fixture
def editor(monkeypatch):
    path = user_file()
    path.parent.mkdir(parents=True)
    made = Editor(path, monkeypatch)
    made.put(OLD)
    made.leave_alone()
    assert reading.read(path) == OLD and made.waits == []
    return made


@pytest.mark.parametrize("way", SAVING)
def test_a_file_that_is_being_saved_is_read_when_it_is(editor, way):
    editor.begin(SAVING[way])
    assert reading.read(editor.path) == NEW
    assert sum(editor.waits) < 0.5


@pytest.mark.parametrize("way", SAVING)
def test_what_the_user_set_is_in_force_while_they_save_it(editor, way):
    """There is no moment in which what a file limits is not limited."""
    editor.begin(SAVING[way])
    loaded = load("")
    assert loaded.fault == "" and loaded.settings.approval.most_waiting == 7


def test_a_file_that_is_emptied_is_empty(editor):
    editor.begin([b""])
    assert reading.read(editor.path) == b""
    editor.leave_alone()
    assert reading.read(editor.path) == b"" and editor.waits == []


def test_a_file_that_is_removed_is_gone_and_not_waited_for_again(editor):
    editor.begin([None])
    assert reading.read(editor.path) is None and len(editor.waits) == 1
    editor.leave_alone()
    assert reading.read(editor.path) is None and editor.waits == []


def test_a_file_that_never_was_is_not_waited_for(editor, tmp_path):
    assert reading.read(tmp_path / "never") is None and editor.waits == []


@pytest.mark.invariant("half of a file is never taken for all of it")
def test_a_file_that_is_written_without_end_holds_up_nobody_for_long(editor):
    """Nor is it believed: every call is blocked until it stands still."""
    editor.begin(OLD + b"#" * n for n in range(10_000))
    with pytest.raises(ConfigError, match="somebody writes it all the time"):
        reading.read(editor.path)
    assert sum(editor.waits) < 0.5
    assert "somebody writes it all the time" in load("").fault
    editor.leave_alone()
    assert reading.read(editor.path).startswith(OLD) and load("").fault == ""


def test_a_moment_that_is_yet_to_come_is_not_waited_for(editor):
    editor.put(NEW, at=editor.now + 3600)
    assert reading.read(editor.path) == NEW and editor.waits == []


def test_what_is_known_to_be_there_does_not_grow_without_end(editor, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_THERE", 10)
    for number in range(50):
        (tmp_path / str(number)).write_bytes(b"x")
        reading.read(tmp_path / str(number))
    assert len(reading._there) <= 10
