"""Both clients, compiled and Python, as every behaviour test meets them; and a door to knock on."""

import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import checkrein
from checkrein import hookclient
from hookclient.servers import Server, frame, processes_naming
from patience import PATIENCE

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src/checkrein/hookclient"
# The longest wait a hook may be registered with: no client that works reaches it in a test.
LONGEST = 86_400
LIMITS = {"FIRST_ANSWER": 10.0, "NEXT_FRAME": 15.0, "START": 6.0}


@pytest.fixture(scope="session")
def build():
    """The build hook, loaded as hatchling does it."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def compiled(build, tmp_path_factory):
    """Compiles client.c of this checkout, with other limits when asked."""
    folder = tmp_path_factory.mktemp("client")

    def compile_it(name, *extra):
        program = folder / name
        arguments = build.arguments(SOURCE / "client.c", program, checkrein.__version__)
        for compiler in build.local_compilers():
            command = [*compiler, *arguments, *extra, "-Wall", "-Wextra", "-Werror"]
            if build.run(command, may_fail=True):
                return [str(program)]
        if any(shutil.which(compiler[0]) for compiler in build.local_compilers()):
            pytest.fail("client.c does not compile without a warning")
        return pytest.skip("no C compiler here")

    return compile_it


def python_client(path):
    return [sys.executable, "-I", "-S", str(path)]


@pytest.fixture(scope="session", params=["compiled", "python"])
def client(request, compiled):
    """The first words of the client's command line."""
    if request.param == "compiled":
        return compiled(hookclient.PROGRAM)
    return python_client(SOURCE / "client.py")


@pytest.fixture(scope="session", params=["compiled", "python"])
def with_limits(request, compiled, tmp_path_factory):
    """Builds the client with these limits in seconds, every other out of reach: agents cannot change them."""

    @functools.cache
    def build(**given):
        limits = dict.fromkeys(LIMITS, LONGEST) | given
        name = "-".join(f"{each:g}" for each in limits.values())
        if request.param == "compiled":
            return compiled(name, *(f"-D{each}_MS={limits[each] * 1000:.0f}" for each in limits))
        path = tmp_path_factory.mktemp("client") / f"{name}.py"
        path.write_text(with_other_limits(limits), encoding="utf-8")
        return python_client(path)

    return build


def with_other_limits(limits):
    """The text of the Python client; its limits are constants."""
    text = (SOURCE / "client.py").read_text(encoding="utf-8")
    for name, default in LIMITS.items():
        old, new = f"\n{name} = {default}\n", f"\n{name} = {float(limits[name])}\n"
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


class Door:
    """A door file, the folder around it, and a client sent through it."""

    def __init__(self, folder):
        self.path = folder / "door"
        self.socket = folder / "socket"
        self.spool = folder / "spool"
        self.spool.mkdir()
        self.python = folder / "python"
        self.write()

    def write(self, *environment, python=None):
        self.put(f"checkrein-door 1\n{self.socket}\n{self.spool}\n{python or self.python}\n", *environment)

    def put(self, text, *lines):
        content = text if isinstance(text, bytes) else text.encode()
        self.path.write_bytes(content + b"".join(f"{line}\n".encode() for line in lines))
        self.path.chmod(0o600)

    def words(self, client, mode="gate", agent="claude-code", seconds=LONGEST):
        return [*client, str(self.path), agent, mode, str(seconds)]

    def run(self, client, mode="gate", stdin=b"{}", *, env=None, **more):
        words = self.words(client, mode, **more)
        return subprocess.run(
            words, input=stdin, capture_output=True, env=env or clean(), timeout=PATIENCE, check=False
        )

    def spooled(self):
        return sorted(self.spool.iterdir())

    def processes(self):
        """Those that were started for this door and still run: clients and servers (on Linux)."""
        return processes_naming(str(self.path.parent))


def clean(**extra):
    """The environment without what a surrounding agent may have set."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "GEMINI"))
    }
    return inherited | extra


@pytest.fixture
def door(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    made = Door(folder)
    yield made
    for pid in made.processes():  # servers of scripts, which wait long for another client
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def serve(door):
    """Starts a server that answers every request with these bytes, or as the function says."""
    running = []

    def start(answer):
        running.append(Server(door.socket, answer))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def late(serve):
    """An answer that comes when nobody waits any more."""
    over = threading.Event()
    yield lambda connection: (over.wait(), connection.sendall(frame(0, b'{"ok":1}')))
    over.set()
