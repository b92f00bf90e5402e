import getpass
import os

import pytest

from checkrein.cli.opening import Nothing, actor, confirmed, project_path, reading, writing
from checkrein.errors import InputError, StoreBusyError
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore


def test_reading_what_is_not_there_is_reading_nothing(home):
    with reading() as reader:
        assert isinstance(reader, Nothing)
        assert reader.query("SELECT 1") == []
    assert not (home / "state").exists()


def test_writing_is_for_one_process_at_a_time(monkeypatch):
    store = SqliteStore.open(state_dir())
    real = SqliteStore.open
    with monkeypatch.context() as impatient:
        impatient.setattr(SqliteStore, "open", lambda folder: real(folder, wait=0.1))
        with pytest.raises(StoreBusyError), writing():
            pass
    store.close()
    with writing() as pipeline:
        pipeline.note("test", {})
    with reading() as reader:
        assert len(reader.query("SELECT * FROM record")) == 1


def test_a_yes_is_needed_where_nobody_can_be_asked():
    confirmed("really?", True)
    with pytest.raises(InputError, match="--yes"):
        confirmed("really?", False)


def test_the_actor_is_who_is_at_the_terminal(monkeypatch):
    assert actor() == getpass.getuser()
    monkeypatch.setattr(getpass, "getuser", lambda: {}["nobody"])
    assert actor() == f"uid {os.getuid()}"


def test_the_project_is_the_current_one_unless_named(project, monkeypatch, tmp_path):
    monkeypatch.chdir(project)
    assert project_path(None) == project
    assert project_path(str(tmp_path)) == str(tmp_path)
