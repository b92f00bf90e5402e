"""Compiles the hook client into the wheel; without a C compiler the wheel is pure and uses client.py.

CHECKREIN_TARGET names another machine to build for (a key of TARGETS; needs ziglang), or `any`: a pure wheel.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "checkrein-hook"
SOURCE = Path("src/checkrein/hookclient/client.c")
MACOS_MINIMUM = "11.0"
# A static musl program runs on every Linux, so one wheel serves both families.
TARGETS = {
    "x86_64-linux-musl": "manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for wheels, editable ones too."""

    folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel":
            return
        self.folder = tempfile.mkdtemp(prefix="checkrein-build-")
        program = Path(self.folder, PROGRAM)
        try:
            made_for = build(Path(self.root, SOURCE), program, self.metadata.version)
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        if made_for is None:
            self.app.display_warning(
                "No C compiler: this wheel uses the Python hook client, which is slower."
            )
            return
        build_data["shared_scripts"][str(program)] = PROGRAM
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{made_for}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def build(source: Path, program: Path, version: str) -> str | None:
    """The platform the compiled program is for, or None when there is no compiler."""
    target = os.environ.get("CHECKREIN_TARGET", "")
    if target == "any":
        return None
    if not target and this_target() in TARGETS and importlib.util.find_spec("ziglang"):
        target = this_target()
    if target:
        run([*zig(target), *arguments(source, program, version)])
        return TARGETS[target]
    for compiler in local_compilers():
        if run([*compiler, *arguments(source, program, version)], may_fail=True):
            return this_platform()
    return None


def arguments(source: Path, program: Path, version: str) -> list[str]:
    return ["-std=c99", "-Os", "-s", f'-DCHECKREIN_VERSION="{version}"', "-o", str(program), str(source)]


def zig(target: str) -> list[str]:
    if target not in TARGETS:
        raise SystemExit(f"CHECKREIN_TARGET={target} is unknown. Use one of: {', '.join(TARGETS)}, any.")
    compiler = [sys.executable, "-m", "ziglang", "cc"]
    if target.endswith("macos"):
        return [*compiler, "-target", f"{target}.{MACOS_MINIMUM}"]
    return [*compiler, "-target", target, "-static"]


def local_compilers() -> list[list[str]]:
    """Static where that works: a program that loads no libraries starts in half the time."""
    own = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if sys.platform == "darwin":
        return [[*own, f"-mmacosx-version-min={MACOS_MINIMUM}"]]
    return [["musl-gcc", "-static"], [*own, "-static"], own]


def run(command: list[str], *, may_fail: bool = False) -> bool:
    try:
        subprocess.run(command, check=True, capture_output=may_fail)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        if not may_fail:
            raise
        return False
    return True


def this_target() -> str:
    system = "macos" if sys.platform == "darwin" else "linux-musl"
    return f"{machine()}-{system}"


def this_platform() -> str:
    if sys.platform == "darwin":
        return TARGETS[this_target()]
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def machine() -> str:
    name = platform.machine().lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)
