"""Where the real agents are: an npm prefix of our own, filled when it is first needed."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSIONS = {
    "@anthropic-ai/claude-code": "2.1.326",
    "@openai/codex": "0.166.0",
    "@google/gemini-cli": "0.61.0",
    "@github/copilot": "1.0.102",
}
# Looked up before a test has a home of its own.
_CACHE = Path.home() / ".cache" / "checkrein-clients"


def folder():
    return Path(os.environ.get("REAL_CLIENTS") or os.environ.get("CHECKREIN_CLIENTS") or _CACHE)


def program(package, name):
    """The program as npm links it, installed first if need be; skips with the reason if that fails."""
    found = folder() / "node_modules" / ".bin" / name
    if not found.exists():
        _install(package)
    if not found.exists():
        pytest.skip(f"{package} has no program {name} in {folder()}")
    return str(found)


def _install(package):
    if os.environ.get("REAL_CLIENTS"):
        pytest.skip(f"REAL_CLIENTS ({folder()}) holds no {package}")
    if shutil.which("npm") is None:
        pytest.skip(f"{package} is not installed and there is no npm; set REAL_CLIENTS to an npm prefix")
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder())]
        done = subprocess.run(
            [*words, f"{package}@{VERSIONS[package]}"], capture_output=True, text=True, check=False
        )
    if done.returncode:
        pytest.skip(f"npm cannot install {package}: {done.stderr.strip()[-300:]}")
