"""The package as a stranger gets it: a wheel in a fresh environment, with nothing of this checkout around."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.timeout(600)


def run(*words, **extra):
    return subprocess.run(words, check=True, capture_output=True, text=True, **extra).stdout


def build(folder, **env):
    words = ["--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    run(sys.executable, "-m", "pip", "wheel", *words, env=os.environ | env)
    (wheel,) = folder.glob("checkrein-*.whl")
    return wheel


def refused_by_the_client_of(python, folder):
    """The line of an agent's settings, from an environment without a server or even a door file."""
    code = (
        "from checkrein.hookclient import *; print(client_command(Path('no/door'), 'gemini-cli', 'gate', 5))"
    )
    line = run(python, "-c", code, cwd=folder, env=os.environ | {"PYTHONPATH": ""})
    done = subprocess.run(line, shell=True, cwd=folder, input=b"{}", capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["decision"]) == (2, "deny")
    return line


@pytest.mark.skipif(bool(find_spec("ziglang")), reason="the release compiler is installed here")
def test_without_a_compiler_the_wheel_is_pure_and_its_client_works(tmp_path):
    (tmp_path / "empty").mkdir()
    wheel = build(tmp_path, PATH=str(tmp_path / "empty"), CC="")
    assert wheel.name.endswith("-py3-none-any.whl")
    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    run(tmp_path / "fresh/bin/pip", "install", "--quiet", "--no-deps", wheel)
    assert "client.py" in refused_by_the_client_of(tmp_path / "fresh/bin/python", tmp_path)


def test_the_wheel_installs_and_works_on_its_own(tmp_path):
    wheel = build(tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    pip = tmp_path / "fresh/bin/pip"
    run(pip, "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements/runtime.txt")
    run(pip, "install", "--quiet", "--no-deps", wheel)
    checkrein = tmp_path / "fresh/bin/checkrein"
    elsewhere = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": ""}}
    assert "GOOD" in run(checkrein, "demo", "--fast", **elsewhere)
    assert json.loads(run(checkrein, "explain", "git push", "--json", **elsewhere))["verdict"] == "deny"
    assert "verify" in run(checkrein, "audit", "verify", **elsewhere)
    if shutil.which("cc"):
        assert not wheel.name.endswith("-any.whl")
        assert "fresh/bin/checkrein-hook " in refused_by_the_client_of(
            tmp_path / "fresh/bin/python", tmp_path
        )
