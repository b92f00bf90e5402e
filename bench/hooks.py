"""What a hook costs: the installed client against a real server, spawned beside `/bin/true`, turn by turn."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import table
from checkrein import knocking, wire
from checkrein.hookclient import client_path
from checkrein.policy.trust import TrustState
from checkrein.runtime import door_file, write_door
from checkrein.settings.sources import state_dir, user_file
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import FIELDS, put_trust

ROUNDS, COLD_ROUNDS, ASKED_ROUNDS = 240, 12, 40
ENTRIES, DOMAINS = 100_000, 5_000
RULES = """
[[rules]]
action = "allow"
tool = "Bash"
when = [{ path = "command", equals = "rm -rf build" }]
reason = "the build folder can always be made again"
"""
JQ_HOOK = """
input=$(cat)
tool=$(printf '%s' "$input" | jq -r .tool_name)
command=$(printf '%s' "$input" | jq -r .tool_input.command)
case "$command" in rm*) echo "no" >&2; exit 2 ;; esac
printf '%s %s\\n' "$tool" "$command" >> "$1"
"""
FLOOR, LOW, SHELL = "`/bin/true`", "low-risk allow", "low-risk allow through `sh -c`"
PYTHON, OUTCOME = "low-risk allow, Python client", "its outcome"
GOALS = {LOW: "≤ 1.5", SHELL: "≤ 2.5", PYTHON: "≤ 20"}
Spawned = tuple[list[str], bytes, int]


def spawn(words: list[str], payload: bytes, expected: int) -> float:
    """Seconds from the start of a process to its end, with streams as an agent makes them."""
    (said, read), (heard, write) = socket.socketpair(), socket.socketpair()
    said.sendall(payload)
    said.close()
    actions = [(os.POSIX_SPAWN_DUP2, end.fileno(), to) for end, to in ((read, 0), (write, 1), (write, 2))]
    begin = time.perf_counter()
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    taken = time.perf_counter() - begin
    for end in (read, heard, write):
        end.close()
    if os.waitstatus_to_exitcode(status) != expected:
        raise AssertionError(f"{words} ended with {os.waitstatus_to_exitcode(status)}, not {expected}")
    return taken


@contextlib.contextmanager
def own_home() -> Iterator[Path]:
    """A home of its own, and no server left behind."""
    names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    kept = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="checkrein-bench-") as folder:
        os.environ.update({name: f"{folder}/{name.lower()}" for name in names})
        project = Path(folder, "project")
        (project / ".git").mkdir(parents=True)
        user_file().parent.mkdir(parents=True)
        user_file().write_text(RULES)
        write_door()
        try:
            yield project
        finally:
            stop()
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def stop() -> None:
    connection = knocking.connect()
    if connection is not None:
        pid = knocking.ask(connection, "server.about", {})["pid"]
        os.kill(pid, signal.SIGTERM)
        # Until it is gone, not only out of reach: what it still writes would be in a folder that goes.
        deadline = time.monotonic() + 20
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.kill(pid, 0)
                time.sleep(0.01)


class Hooks:
    """The commands that are spawned, each with a payload of its own every time."""

    def __init__(self, project: Path) -> None:
        self.project, self.number = project, 0
        compiled = client_path()
        source = Path(__file__).parent.parent / "src" / "checkrein" / "hookclient" / "client.py"
        self.python = [sys.executable, "-I", "-S", str(source)]
        self.client = [str(compiled)] if compiled else self.python

    def payload(self, command: str) -> bytes:
        self.number += 1
        body = {
            "session_id": "bench",
            "cwd": str(self.project),
            "hook_event_name": "PreToolUse",
            "permission_mode": "default",
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "what it is for"},
            "tool_use_id": f"toolu_{self.number}",
        }
        return json.dumps(body).encode()

    def outcome_of(self, payload: bytes) -> bytes:
        body = json.loads(payload) | {"hook_event_name": "PostToolUse"}
        return json.dumps(body | {"tool_response": {"stdout": "src\n", "interrupted": False}}).encode()

    def words(self, client: list[str], mode: str = "gate") -> list[str]:
        return [*client, str(door_file()), "claude-code", mode, "30"]

    def through_shell(self, client: list[str]) -> list[str]:
        return ["/bin/sh", "-c", f"{shlex.join(self.words(client))} || exit 2"]

    def groups(self, log: Path) -> list[dict[str, Spawned]]:
        """What is spawned in turn, each group beside a `/bin/true` of its own."""
        gate, shell = self.words(self.client), self.through_shell(self.client)
        floor: dict[str, Spawned] = {FLOOR: (["/bin/true"], b"", 0)}
        slow: dict[str, Spawned] = {PYTHON: (self.words(self.python), self.payload("ls src"), 0)}
        if shutil.which("jq"):
            words = [shutil.which("bash") or "bash", "-c", JQ_HOOK, "hook", str(log)]
            slow["a bash hook with two `jq` (for scale)"] = (words, self.payload("ls src"), 0)
        judged, tell = self.payload("ls docs"), self.words(self.client, "tell")
        return [
            floor | {LOW: (gate, self.payload("ls src"), 0), SHELL: (shell, self.payload("ls src"), 0)},
            floor | {"a call that then ends": (gate, judged, 0), OUTCOME: (tell, self.outcome_of(judged), 0)},
            floor
            | {
                "a line never seen before": (gate, self.payload(f"ls src/part-{self.number}"), 0),
                "refusal (one disk sync)": (gate, self.payload("curl https://x.example"), 2),
                "high-risk allow (one disk sync)": (gate, self.payload("rm -rf build"), 0),
            },
            floor | slow,
        ]


def as_agent(work: Callable[[], list[list[float]]]) -> list[list[float]]:
    """What `work` measures in a child process called `claude`: only an agent's own hooks report outcomes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        Path("/proc/self/comm").write_text("claude")
        with os.fdopen(write, "w") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        measured: list[list[float]] = json.load(answer)
    os.waitpid(child, 0)
    return measured


def interleaved(hooks: Hooks, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """For every row its times, and those of the floor spawned beside it, sorted."""
    taken: dict[str, tuple[list[float], list[float]]] = {}
    log = hooks.project.parent / "jq.log"
    for number, labels in enumerate(map(list, hooks.groups(log))):

        def play(number: int = number) -> list[list[float]]:
            # Payloads are numbered on in every round, also in the child of `as_agent`.
            rows = (hooks.groups(log)[number] for _ in range(rounds))
            return [[spawn(*each) for each in row.values()] for row in rows]

        measured = as_agent(play) if sys.platform == "linux" and OUTCOME in labels else play()
        columns = dict(zip(labels, map(sorted, zip(*measured, strict=True)), strict=True))
        floor = columns.pop(FLOOR)
        taken |= {label: (times, floor) for label, times in columns.items()}
    return taken


def settle() -> None:
    """Wait until the server has nothing of its own to do: it verifies the whole record after it started."""
    pid = knocking.ask(knocking.start(), "server.about", {})["pid"]
    busy, quiet = -1, 0
    while quiet < 4:
        time.sleep(0.5)
        used = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        quiet = quiet + 1 if used - busy <= 1 else 0
        busy = used


def cold(hooks: Hooks) -> list[float]:
    """With no server there: the hook starts one and has its answer."""
    taken = []
    for _ in range(COLD_ROUNDS):
        stop()
        taken.append(spawn(hooks.words(hooks.client), hooks.payload("ls src"), 0))
    return sorted(taken)


def released(hooks: Hooks) -> list[float]:
    """From a person's yes to the end of the hook that waited for it."""
    line = knocking.start()
    wire.send(line, wire.encode_request("0", ("verb", "inbox.attend"), b"{}"))
    wire.receive(line, time.monotonic() + 10)
    taken = []
    for number in range(ASKED_ROUNDS):
        hook = subprocess.Popen(hooks.words(hooks.client), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert hook.stdin
        hook.stdin.write(hooks.payload(f"make target{number}"))
        hook.stdin.close()
        while not (found := knocking.ask(knocking.start(), "question.list", {})) or not found[0]["awaited"]:
            time.sleep(0.005)
        begin = time.perf_counter()
        knocking.ask(knocking.start(), "question.answer", {"id": found[0]["id"], "answer": "approved"})
        hook.wait()
        taken.append(time.perf_counter() - begin)
    line.close()
    return sorted(taken)


def programs_started(hooks: Hooks) -> str:
    """How many programs one hook executes, as the kernel counts them."""
    strace = shutil.which("strace")
    if strace is None:
        return "not counted (no strace here)"
    done = subprocess.run(
        [strace, "-f", "-e", "trace=execve", *hooks.words(hooks.client)],
        input=hooks.payload("ls src"),
        capture_output=True,
        check=False,
    )
    return str(done.stderr.count(b"execve("))


def fill(hooks: Hooks) -> None:
    """A long record and many domains, as after years of use."""
    stop()
    store = SqliteStore.open(state_dir())
    fields = {name: getattr(TrustState(score=0.3), name) for name in FIELDS}

    def domains(tx: object) -> None:
        for number in range(DOMAINS):
            put_trust(tx, str(hooks.project), f"mcp:server-{number}", fields)  # type: ignore[arg-type]

    store.write(domains)
    store.close()
    from checkrein.call import tool_call
    from checkrein.core.decision import DecisionRequest
    from checkrein.pipeline import Pipeline

    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    call = {"tool": "Read", "arguments": {"file_path": "README.md"}, "project": str(hooks.project)}
    request = DecisionRequest(tool_call(call))
    judged = pipeline.judge(request.call)
    for first in range(0, ENTRIES, 5_000):
        pipeline.store.write(
            lambda tx, first=first: [
                pipeline._recording.record(tx, f"0{number:015d}", request, judged, False)
                for number in range(first, first + 5_000)
            ]
        )
        sys.stderr.write(f"\r  filling the record: {first:,} of {ENTRIES:,}")
    sys.stderr.write("\r" + " " * 60 + "\r")
    pipeline.close()


def section() -> str:
    with own_home() as project:
        hooks = Hooks(project)
        connection = knocking.start()
        knocking.ask(connection, "phase.set", {"name": "building", "project": str(project)})
        interleaved(hooks, 10)
        settle()
        taken = interleaved(hooks, ROUNDS)
        started = programs_started(hooks)
        answers = released(hooks)
        starts = cold(hooks)
        fill(hooks)
        interleaved(hooks, 5)
        time.sleep(3)
        settle()
        later = interleaved(hooks, ROUNDS // 2)
    rows = [
        [
            label,
            f"{_half(times) * 1e3:.2f} ms",
            f"{_half(times) / _half(floor):.2f}",
            f"{times[0] / floor[0]:.2f}",
            f"{_half(later[label][0]) / _half(later[label][1]):.2f}",
            GOALS.get(label, ""),
        ]
        for label, (times, floor) in taken.items()
    ]
    head = ["process", "p50", "× `/bin/true` (p50)", "(min)", "with a long record", "goal"]
    kind = "static C program" if client_path() else "Python"
    floor = _half(taken[LOW][1]) * 1e3
    return f"""## A hook, from spawn to exit

{ROUNDS} rounds of each group; in a round every row is spawned once beside a `/bin/true` ({floor:.2f} ms).
Each call is judged and its record committed before the answer leaves. The client is the {kind}.
*With a long record*: the ratio again after {ENTRIES:,} more entries and {DOMAINS:,} domains.

{table(head, rows)}
Cold start (no server; the hook starts it and is answered): {_half(starts) * 1e3:.0f} ms p50,
{starts[0] * 1e3:.0f} ms min of {COLD_ROUNDS} (goal ≤ 300 ms). Programs executed by one hook: {started}.
From a person's yes to the end of the hook that waited: {_half(answers) * 1e3:.1f} ms p50 (goal ≤ 25 ms).
"""


def _half(times: list[float]) -> float:
    return times[len(times) // 2]
