"""The package as a stranger gets it: a wheel in a fresh environment, with nothing of this checkout around."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def run(*words, **extra):
    return subprocess.run(words, check=True, capture_output=True, text=True, **extra).stdout


def test_the_wheel_installs_and_works_on_its_own(tmp_path):
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        ROOT,
    )
    (wheel,) = tmp_path.glob("checkrein-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    pip = tmp_path / "fresh/bin/pip"
    run(pip, "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements/runtime.txt")
    run(pip, "install", "--quiet", "--no-deps", wheel)
    checkrein = tmp_path / "fresh/bin/checkrein"
    elsewhere = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": ""}}
    assert "GOOD" in run(checkrein, "demo", "--fast", **elsewhere)
    assert json.loads(run(checkrein, "explain", "git push", "--json", **elsewhere))["verdict"] == "deny"
    assert "verify" in run(checkrein, "audit", "verify", **elsewhere)
