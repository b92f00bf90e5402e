"""Compiled code: kept, and never taken from anybody else."""

import hashlib
import json
import shutil
import subprocess
import sys

import pytest

from checkrein.execute import js_modules
from checkrein.execute.sandbox import Ended
from javascript_ground import compiled, run

BUILD = b"b" * 32


@pytest.fixture
def kept(tmp_path):
    """A folder with the real module, as we would have left it."""
    assert run("1 + 1") == Ended(2)
    shutil.copytree(compiled(), tmp_path / "execute")
    return tmp_path / "execute"


def found(folder):
    """Whether the module there would be used; asked in another process, which engines stay in."""
    program = (
        "import sys, pathlib, hashlib\nfrom checkrein.execute import js_modules as m\n"
        "build = hashlib.sha256(m._source('_guest.wasm')).digest()\n"
        "print(m._kept(pathlib.Path(sys.argv[1]), 'quickjs', build) is not None)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, folder], capture_output=True, text=True, check=True
    )
    return shown.stdout.strip() == "True"


def test_it_is_found_again(kept):
    assert found(kept)
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    assert kept.stat().st_mode & 0o777 == 0o700


@pytest.mark.invariant("compiled code is native code")
def test_another_module_is_not_used(kept):
    module = kept / "quickjs.cwasm"
    *data, last = module.read_bytes()
    module.write_bytes(bytes([*data, last ^ 1]))
    assert not found(kept)


def test_a_module_under_another_key_is_not_used(kept):
    planted = (kept / "transform.cwasm").read_bytes()
    (kept / "quickjs.cwasm").write_bytes(planted)
    note = json.loads((kept / "transform.json").read_text())
    (kept / "quickjs.json").write_text(json.dumps(note | {"sha256": hashlib.sha256(planted).hexdigest()}))
    assert not found(kept)


@pytest.mark.invariant("compiled code is native code")
@pytest.mark.parametrize("name", ["quickjs.cwasm", "quickjs.json"])
def test_what_others_can_write_is_not_used(kept, name):
    (kept / name).chmod(0o622)
    assert not found(kept)


@pytest.mark.invariant("compiled code is native code")
def test_a_folder_others_can_enter_is_not_used(kept):
    kept.chmod(0o755)
    assert not found(kept)


def test_a_link_is_not_followed(kept, tmp_path):
    (kept / "quickjs.cwasm").rename(tmp_path / "elsewhere")
    (kept / "quickjs.cwasm").symlink_to(tmp_path / "elsewhere")
    assert not found(kept)
    (tmp_path / "link").symlink_to(kept)
    assert not found(tmp_path / "link")


@pytest.mark.parametrize("note", ["", "[]", "null", '{"key": 1}'])
def test_a_broken_note_is_no_note(kept, note):
    (kept / "quickjs.json").write_text(note)
    assert not found(kept)


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path):
    (tmp_path / "file").write_text("")
    js_modules._keep(tmp_path / "file", "quickjs", BUILD, b"x")
    js_modules._keep(tmp_path / "new", "quickjs", BUILD, b"x")
    assert (tmp_path / "new" / "quickjs.cwasm").read_bytes() == b"x"
