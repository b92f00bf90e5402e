"""The engine's WebAssembly, compiled once and kept: compiling takes seconds, reading milliseconds.

Called by the process that workers are forked from, before there is a worker.
INVARIANT: compiled code is native code; it is used only from a folder nobody else can enter, and only when it
has the sum that was written down when we compiled it from the package's own files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

_PACKAGE = "quickjs_rs"
PARTS = {"quickjs": "_guest.wasm", "transform": "_transform.wasm"}
# How deep a script may recurse: more than the engine's own half megabyte, less than what its stack bears.
_STACK = 1 << 20
_LARGEST = 64 << 20


def engine() -> Any:
    """The one wasmtime engine of this process, which the package then uses too."""
    import quickjs_rs._wasmtime as shared
    import wasmtime

    if shared._SHARED_ENGINE is None:
        config = wasmtime.Config()
        config.max_wasm_stack = _STACK
        if sys.platform == "darwin":
            # A thread of the engine's own would not survive a fork.
            config.macos_use_mach_ports = False
        shared._SHARED_ENGINE = wasmtime.Engine(config)
    return shared._SHARED_ENGINE


def prepare(folder: Path) -> None:
    """Give the package its modules, compiled."""
    import quickjs_rs._engine as package
    import quickjs_rs._wasmtime as shared
    import wasmtime

    for part, name in PARTS.items():
        source = _source(name)
        build = hashlib.sha256(source).digest()
        module = _kept(folder, part, build)
        if module is None:
            compiled = _compile_elsewhere(part)
            _keep(folder, part, build, compiled)
            module = wasmtime.Module.deserialize(engine(), compiled)
        linker = (package._build_shared_linker if part == "quickjs" else shared.default_wasi_linker)(engine())
        shared._SHARED_ARTIFACTS[part] = shared.SharedWasmArtifact(module, linker, build)


def _source(name: str) -> bytes:
    from importlib.resources import files

    return (files(_PACKAGE) / name).read_bytes()


def compile_here(part: str) -> bytes:
    import wasmtime

    return bytes(wasmtime.Module(engine(), _source(PARTS[part])).serialize())


def _compile_elsewhere(part: str) -> bytes:
    """Compiling starts threads, and a process with threads must not fork."""
    command = [sys.executable, "-I", "-m", __name__, part]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, env={}).stdout  # noqa: S603


def _key(build: bytes) -> str:
    from importlib.metadata import version

    made_with = [version("quickjs-rs"), version("wasmtime"), sys.platform, platform.machine(), _STACK]
    return hashlib.sha256(json.dumps([build.hex(), *made_with]).encode()).hexdigest()


def _kept(folder: Path, part: str, build: bytes) -> Any:
    """The module as we left it; None when it is not there, not ours, or not what it was."""
    import wasmtime

    note, compiled = _read(folder, f"{part}.json"), _read(folder, f"{part}.cwasm")
    if note is None or compiled is None:
        return None
    try:
        found = json.loads(note)
    except ValueError:
        return None
    if found != {"key": _key(build), "sha256": hashlib.sha256(compiled).hexdigest()}:
        return None
    try:
        return wasmtime.Module.deserialize(engine(), compiled)
    except wasmtime.WasmtimeError:
        return None


def _keep(folder: Path, part: str, build: bytes, compiled: bytes) -> None:
    note = json.dumps({"key": _key(build), "sha256": hashlib.sha256(compiled).hexdigest()})
    # A disk that is full or not ours to write costs time at the next start, nothing else.
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(folder):
            _write(folder / f"{part}.cwasm", compiled)
            _write(folder / f"{part}.json", note.encode())


def _write(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    with os.fdopen(
        os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb"
    ) as file:
        file.write(data)
    beside.replace(path)


def _read(folder: Path, name: str) -> bytes | None:
    if not _is_private(folder):
        return None
    try:
        with os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o177 or status.st_size > _LARGEST:
                return None
            return file.read(_LARGEST)
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return (
        folder.is_dir()
        and not folder.is_symlink()
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o077
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(compile_here(sys.argv[1]))
