"""Which client is installed, and the line that runs it."""

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from checkrein import hookclient
from hookclient.servers import frame
from patience import PATIENCE


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (tmp_path / "nowhere").mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(folder))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere/python"))
    return folder


def program(folder, mode=0o755):
    path = folder / hookclient.PROGRAM
    path.write_bytes(b"\x7fELF")
    path.chmod(mode)
    return path


def test_the_compiled_client_is_among_the_scripts(scripts):
    assert hookclient.client_path() is None
    path = program(scripts)
    assert hookclient.client_path() == path
    assert hookclient.client_words() == [str(path)]


def test_or_beside_the_interpreter(scripts):
    path = program(Path(sys.executable).parent)
    assert hookclient.client_path() == path


def test_what_cannot_be_run_is_not_the_client(scripts):
    (scripts / hookclient.PROGRAM).mkdir()
    assert hookclient.client_path() is None
    program(Path(sys.executable).parent, mode=0o644)
    assert hookclient.client_path() is None


def test_without_one_it_is_the_python_file(scripts):
    python, *options, file = hookclient.client_words()
    assert (python, options) == (sys.executable, ["-I", "-S"])
    assert Path(file).name == "client.py"
    assert Path(file).is_file()


def test_only_a_gate_refuses_when_the_client_cannot_start(scripts):
    program(scripts)
    door = Path("/a b/it's/door")
    gate = hookclient.client_command(door, "codex", "gate", 25)
    assert gate.endswith(" codex gate 25 || exit 2")
    tell = hookclient.client_command(door, "codex", "tell", 25)
    assert shlex.split(tell) == [str(scripts / hookclient.PROGRAM), str(door), "codex", "tell", "25"]
    program(scripts, mode=0o755).write_text("#!/does/not/exist\n", encoding="utf-8")
    assert subprocess.run(["sh", "-c", gate], capture_output=True, check=False).returncode == 2
    assert subprocess.run(["sh", "-c", tell], capture_output=True, check=False).returncode == 127


def test_an_mcp_client_runs_the_same_program(scripts):
    path = program(scripts)
    assert hookclient.pump_words(Path("/a b/door")) == [str(path), "/a b/door", "mcp"]


def test_the_line_works_in_a_shell(door, serve):
    serve(frame(0, b"answer"))
    line = hookclient.client_command(door.path, "cursor", "gate", 600)
    result = subprocess.run(
        ["sh", "-c", line], input=b"{}", capture_output=True, check=False, timeout=PATIENCE
    )
    assert (result.returncode, result.stdout) == (0, b"answer")
