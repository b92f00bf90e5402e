"""The build hook: which compiler, which tag, and a pure wheel when there is none."""

import platform
import subprocess
import sys

import pytest

from hookclient.conftest import SOURCE

CLIENT = SOURCE / "client.c"


@pytest.fixture(autouse=True)
def no_target(monkeypatch):
    for name in ("CHECKREIN_TARGET", "CC"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_compiled_runs_and_is_tagged_for_this_machine(build, compiled, tmp_path, monkeypatch):
    compiled("probe")
    # Where the release compiler is installed too, it would be preferred.
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _name: None)
    program = tmp_path / "client"
    assert build.build(CLIENT, program, "9.9.9") == build.this_platform()
    assert platform.machine() in build.this_platform()
    assert b"9.9.9" in program.read_bytes()
    assert subprocess.run([program], capture_output=True, check=False).returncode == 2


def test_without_a_compiler_there_is_nothing_to_ship(build, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _name: None)
    assert build.build(CLIENT, tmp_path / "client", "1") is None


def test_a_compiler_that_fails_is_no_compiler(build, tmp_path, monkeypatch):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("CC", f"{sys.executable} -c 'raise SystemExit(1)'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.build(CLIENT, tmp_path / "client", "1") is None


def test_a_pure_wheel_can_be_asked_for(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKREIN_TARGET", "any")
    assert build.build(CLIENT, tmp_path / "client", "1") is None


def test_an_unknown_target_stops_the_build(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKREIN_TARGET", "vax")
    with pytest.raises(SystemExit, match="aarch64-macos"):
        build.build(CLIENT, tmp_path / "client", "1")


def test_a_target_without_its_compiler_stops_the_build(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKREIN_TARGET", "aarch64-macos")
    monkeypatch.setattr(build.sys, "executable", "/bin/false")
    with pytest.raises(subprocess.CalledProcessError):
        build.build(CLIENT, tmp_path / "client", "1")
