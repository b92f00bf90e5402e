"""Where the server is found, and that nobody else can put themselves there."""

import os
import stat
import sys
from pathlib import Path

import pytest

from checkrein import runtime
from checkrein.errors import NotFoundError, StoreError
from checkrein.runtime import (
    LONGEST_SOCKET,
    LOOPBACK,
    door_file,
    listen_on_loopback,
    log_file,
    private_folder,
    read_door,
    socket_path,
    spool_dir,
    write_door,
)
from checkrein.settings.sources import state_dir


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_door_says_everything_a_hook_needs(monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    write_door()
    door = read_door()
    assert (door.socket, door.spool, door.python) == (str(socket_path()), str(spool_dir()), sys.executable)
    assert door.environment["XDG_STATE_HOME"] == os.environ["XDG_STATE_HOME"]
    # Nothing of an agent's environment reaches a server that a hook starts.
    assert set(door.environment) <= set(runtime._INHERITED)
    assert door_file().read_text().split("\n")[:2] == ["checkrein-door 1", str(socket_path())]


def test_the_door_and_what_it_names_are_the_owner_s_alone():
    write_door()
    assert mode(door_file()) == 0o600
    assert mode(state_dir()) == mode(spool_dir()) == 0o700


def test_the_same_door_is_not_written_again_and_another_one_is(home):
    first = write_door().stat().st_ino
    assert write_door().stat().st_ino == first
    write_door(home / "other.sock")
    assert read_door().socket == str(home / "other.sock")
    assert [each.name for each in state_dir().iterdir() if each.name.startswith(".door")] == []


def test_names_that_are_no_utf8_go_through_unchanged(home, monkeypatch):
    odd = os.fsdecode(bytes(str(home), "utf-8") + b"/st\xffate")
    monkeypatch.setenv("XDG_STATE_HOME", odd)
    write_door()
    assert read_door().spool == str(spool_dir())
    assert b"st\xffate" in door_file().read_bytes()


def test_a_line_break_in_a_name_is_refused_for_it_would_forge_a_line(home, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/a\nLD_PRELOAD=/evil.so")
    with pytest.raises(StoreError, match="line break"):
        write_door()
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/a")
    monkeypatch.setenv("TZ", "UTC\nLD_PRELOAD=/evil.so")
    with pytest.raises(StoreError, match="line break"):
        write_door()


def test_a_door_that_cannot_be_written_is_said_and_leaves_nothing_behind():
    private_folder(state_dir())
    door_file().mkdir()
    with pytest.raises(StoreError, match="door"):
        write_door()
    assert sorted(each.name for each in state_dir().iterdir()) == ["door", "spool"]


@pytest.mark.parametrize("content", [b"", b"checkrein-door 2\n/s\n/p\n/y\n", b"x", b"checkrein-door 1\n/s"])
def test_a_door_nobody_wrote_so_is_no_door(content):
    state_dir().mkdir(parents=True)
    door_file().write_bytes(content)
    with pytest.raises(NotFoundError, match="cannot be read"):
        read_door()


def test_no_door_means_no_server_has_run_here():
    with pytest.raises(NotFoundError, match="No server has run here"):
        read_door()


def test_a_folder_is_made_private_and_kept_so(home):
    folder = home / "a" / "b"
    private_folder(folder)
    folder.chmod(0o755)
    assert mode(private_folder(folder)) == 0o700


def test_a_folder_of_somebody_else_or_a_link_to_one_is_refused(home, monkeypatch):
    (home / "real").mkdir()
    (home / "link").symlink_to(home / "real")
    with pytest.raises(StoreError):
        private_folder(home / "link")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StoreError, match="another user"):
        private_folder(home / "real")


def test_a_file_where_the_folder_should_be_is_explained(home):
    (home / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        private_folder(home / "file" / "below")


def test_every_state_directory_has_a_socket_of_its_own(home, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/4711")
    first = socket_path()
    assert first.parent == Path(os.environ["XDG_RUNTIME_DIR"], "checkrein")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "other"))
    assert socket_path() != first


@pytest.mark.parametrize("given", ["", "relative/run"])
def test_without_a_usable_runtime_folder_the_socket_is_in_the_state_directory(home, monkeypatch, given):
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    monkeypatch.setenv("XDG_RUNTIME_DIR", given)
    assert socket_path().parent == state_dir() / "run"


def test_a_name_too_long_for_a_socket_gives_way_to_a_short_private_one(home, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "long" * 40)
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setattr("tempfile.tempdir", None)
    path = socket_path()
    assert len(os.fsencode(path)) <= LONGEST_SOCKET
    assert path.parent == Path(f"/tmp/checkrein-{os.getuid()}")


def test_the_log_and_the_spool_lie_in_the_state_directory():
    assert {log_file().parent, spool_dir().parent, door_file().parent} == {state_dir()}


def test_a_loopback_port_that_is_taken_is_passed_over():
    first = listen_on_loopback((0,), 1)
    port = first.getsockname()[1]
    second = listen_on_loopback((port, 0), 1)
    try:
        assert second.getsockname()[0] == LOOPBACK and second.getsockname()[1] != port
        assert not second.get_inheritable()
        assert listen_on_loopback((port,), 1) is None
    finally:
        first.close()
        second.close()
