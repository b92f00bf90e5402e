"""What scripts cost: each call of theirs beside the bare server, starting, putting away, many at once.

Same run, in turn, through a client on stdio as agents use it. Token counts are exact where a tokenizer is
installed (`splintr`), else estimated; the section says which.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.gateway import PORTABLE, stdio_ways, upstream
from bench.gateway_parts.house import SERVER, ask, house, private_memory, server_pid
from bench.gateway_parts.talk import Talk
from bench.measure import table
from checkrein.doors.gateway.scripts.vault import Vault
from checkrein.execute import stub_costs
from checkrein.execute.names import script_names
from checkrein.execute.sandbox import Answer, Engine, Limits, Paused, Tool
from checkrein.execute.stubs import Described

ROUNDS = int(os.environ.get("CHECKREIN_BENCH_EVAL", "60"))
CALLS, SESSIONS, MANY, SUSPENDED = 20, 64, max(ROUNDS * 16, 100), 100
# Calls are timed in so many passes, with everything else in between: a machine has its moments.
PASSES = 3
LANGUAGES = ("python", "javascript")
SETTINGS = """
[gateway]
calls_per_minute = 100000000

[approval]
most_waiting = 1000

[evaluation]
asks_per_minute = 1000000
calls = 1000
wait_seconds = 50

[evaluation.profiles.asking]
asklist = ["bench__*"]
"""
ECHO = f"{SERVER}__echo"
SCRIPTS = {
    "python": f"""
last = ""
for n in range(%d):
    last = (await codemode.{ECHO}(message="call " + str(n)))["content"][0]["text"]
last""",
    "javascript": f"""
let last = "";
for (let n = 0; n < %d; n++) last = (await codemode.{ECHO}({{message: "call " + n}})).content[0].text;
return last;""",
}
ONE = {
    "python": f"x = {ECHO}(message='one')\nx",
    "javascript": f"return await codemode.{ECHO}({{message: 'one'}});",
}
ADDED = {"python": 0.6, "javascript": 2.0}
START = {"python": 5.0, "javascript": 10.0}
AWAY = {"python": 5.0, "javascript": 20.0}


def half(values: list[float]) -> float:
    return statistics.median(values)


def script(talk: Talk, language: str, calls: int) -> float:
    """Seconds of one run with this many calls, one after the other."""
    given = {"code": SCRIPTS[language] % calls, "language": language}
    begin = time.perf_counter()
    answer = talk.ask("tools/call", {"name": "eval", "arguments": given})
    taken = time.perf_counter() - begin
    result = answer["result"]["structuredContent"]
    assert result["status"] == "done" and len(result["calls"]) == calls, result
    return taken


def runs(words: list[str]) -> dict[str, list[float]]:
    """Seconds of a call of the bare server and of runs without and with calls, in turn."""
    chance = random.Random(5)
    ways = stdio_ways(words)
    ours = next(iter(label for label in ways if label.startswith("Checkrein")), PORTABLE)
    bare, talk = Talk(words, "echo"), Talk(*ways[ours])
    work: dict[str, Callable[[], float]] = {
        "direct": lambda: sum(bare.call() for _ in range(CALLS)) / CALLS,
        "judged": lambda: sum(talk.call() for _ in range(CALLS)) / CALLS,
        **{
            f"{each} {calls}": functools.partial(script, talk, each, calls)
            for each in LANGUAGES
            for calls in (0, CALLS)
        },
    }
    taken: dict[str, list[float]] = {label: [] for label in work}
    try:
        for number in range(ROUNDS // PASSES + 5):
            for label in chance.sample(list(work), len(work)):
                seconds = work[label]()
                if number >= 5:
                    taken[label].append(seconds)
    finally:
        bare.end()
        talk.end()
    return taken


def rate(words: list[str], language: str, sessions: int, each: int) -> float:
    """Runs a second of so many clients at once, each with its own pump."""
    way = stdio_ways(words)
    ours = next(label for label in way if label.startswith("Checkrein"))
    talks = [Talk(*way[ours]) for _ in range(sessions)]
    ready = threading.Barrier(sessions + 1)

    def work(talk: Talk) -> None:
        script(talk, language, 1)
        ready.wait()
        for _ in range(each):
            script(talk, language, 5)

    threads = [threading.Thread(target=work, args=(talk,)) for talk in talks]
    for thread in threads:
        thread.start()
    ready.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - begin
    for talk in talks:
        talk.end()
    return sessions * each / taken


def family(pid: int) -> list[int]:
    """A process and all it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text(encoding="ascii").split()
        except OSError:
            continue
        found += [each for child in children for each in family(int(child))]
    return found


def memory() -> int:
    total = 0
    for pid in family(server_pid()):
        try:
            total += private_memory(pid)
        except OSError:
            continue
    return total


def growth(words: list[str]) -> float:
    """Bytes the server and its workers grow by in many runs."""
    way = stdio_ways(words)
    talk = Talk(*way[next(label for label in way if label.startswith("Checkrein"))])
    try:
        for number in range(100):
            script(talk, LANGUAGES[number % 2], 1)
        before = memory()
        for number in range(MANY):
            script(talk, LANGUAGES[number % 2], 1)
        return float(memory() - before)
    finally:
        talk.end()


def waiting() -> tuple[int, int]:
    """(runs that wait for a person, processes more than before)."""
    # What starts once and stays is there before anything is counted.
    for language in LANGUAGES:
        ask("run.start", source="1", language=language, wait=20)
    pid = server_pid()
    before = len(family(pid))
    for number in range(SUSPENDED):
        language = LANGUAGES[number % 2]
        source = ONE[language].replace("one", f"one {number}")
        ask("run.start", source=source, language=language, profile="asking", wait=20)
    held = sum(each["state"] == "waiting" for each in ask("run.list", limit=SUSPENDED))
    deadline = time.monotonic() + 10
    while (after := len(family(pid))) > before and time.monotonic() < deadline:
        time.sleep(0.1)
    for each in ask("run.list", limit=SUSPENDED):
        ask("run.cancel", id=each["id"])
    return held, after - before


# Putting away and taking up again


async def away(engine: Engine, language: str, vault: Vault) -> tuple[list[float], list[float]]:
    """Seconds to put a script that waits away, sealed, and to take it up again to its end."""
    tools, limits = [Tool(ECHO)], Limits()
    down: list[float] = []
    up: list[float] = []
    for number in range(ROUNDS + 3):
        session = await engine.open(tools, limits)
        step = await session.start(ONE[language])
        assert isinstance(step, Paused), step
        begin = time.perf_counter()
        sealed = vault.close(await session.dump(), "run", "suspended", number)
        middle = time.perf_counter()
        again = await engine.load(vault.open(sealed, "run", "suspended", number), tools, limits)
        await again.resume({each.id: Answer(value=1) for each in step.wanted})
        ended = time.perf_counter()
        await again.close()
        await session.close()
        if number >= 3:
            down.append(middle - begin)
            up.append(ended - middle)
    return down, up


def put_away() -> dict[str, tuple[list[float], list[float]]]:
    from checkrein.execute.javascript import JavaScriptEngine
    from checkrein.execute.python import PythonEngine

    async def work() -> dict[str, tuple[list[float], list[float]]]:
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            for language, made in (("python", PythonEngine()), ("javascript", JavaScriptEngine())):
                engine: Engine = made
                found[language] = await away(engine, language, Vault(Path(folder)))
                await engine.close()
        return found

    return asyncio.run(work())


# Tokens


def hundred_tools() -> tuple[list[Described], str]:
    """Real definitions where the measured set of them is at hand, else made ones; and which they are."""
    path = Path(os.environ.get("CHECKREIN_DATA", "")) / "tools.json"
    if os.environ.get("CHECKREIN_DATA") and path.exists():
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))[:100]
        named = script_names((row["server"], row["name"]) for row in rows)
        tools = [
            Described(named[row["server"], row["name"]], row["description"], row["inputSchema"])
            for row in rows
        ]
        return tools, "definitions of real servers"
    made = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where the thing is, from the project's root."},
            "limit": {"type": "integer", "description": "How many of them at most.", "default": 20},
        },
        "required": ["path"],
    }
    said = "Looks at things and returns them as text. Use it when the path is known; it changes nothing."
    return [Described(f"made__tool_{number}", said, made) for number in range(100)], "made definitions"


def tokens() -> str:
    tools, what = hundred_tools()
    head = [
        "language",
        "definitions",
        "stubs, whole",
        "one sentence each",
        "signatures",
        "names",
        "search only",
    ]
    rows, exact = [], False
    for language in ("typescript", "python"):
        found = stub_costs.costs(tools, "python" if language == "python" else "typescript")
        exact = found.exact
        counts = (found.definitions, found.whole, found.sentence, found.signatures, found.names, found.search)
        rows.append([language, *(f"{each:,}" for each in counts)])
    how = "counted (o200k)" if exact else "estimated (UTF-8 bytes / 4)"
    return f"Tokens to tell a model of {len(tools)} tools ({what}), {how}:\n\n{table(head, rows)}"


# The section


def section() -> str:
    words, _, what = upstream()
    aside = put_away()
    with house(words, SETTINGS):
        passes = [runs(words)]
        rates = {each: (rate(words, each, 1, ROUNDS), rate(words, each, SESSIONS, 5)) for each in LANGUAGES}
        passes.append(runs(words))
        grown = growth(words)
        held, processes = waiting()
        passes += [runs(words) for _ in range(PASSES - len(passes))]
    taken = {label: [seconds for each in passes for seconds in each[label]] for label in passes[0]}
    direct = half(taken["direct"]) * 1e3
    rows = []
    for each in LANGUAGES:
        start = half(taken[f"{each} 0"]) * 1e3
        added = (half(taken[f"{each} {CALLS}"]) * 1e3 - start) / CALLS - direct
        one, many = rates[each]
        down, up = (half(seconds) * 1e3 for seconds in aside[each])
        rows.append(
            [
                each.capitalize().replace("script", "Script"),
                f"{added:.2f} ms (≤ {ADDED[each]})",
                f"{start:.1f} ms (≤ {START[each]:.0f})",
                f"{down:.1f} / {up:.1f} ms (≤ {AWAY[each]:.0f})",
                f"{one:.0f} / {many:.0f}",
            ]
        )
    head = [
        "language",
        "added to a call",
        "empty run",
        "put away / taken up",
        f"runs / s, 1 / {SESSIONS} sessions",
    ]
    judged = half(taken["judged"]) * 1e3
    return f"""## Scripts

Each call of a script is judged, recorded and committed before the server behind hears of it; goals in
brackets. The tool is `echo` of {what}: {direct:.2f} ms a call
when asked directly, {judged:.2f} ms as a call of its own through the gateway. Runs of {CALLS} calls one
after the other and runs without calls, p50 of {ROUNDS} in {PASSES} passes, in turn; an empty run is
everything from the client's request to its answer. A script is put away sealed, and taken up to its end.
Runs a second have five calls each (goal: many sessions get at least what one gets).

{table(head, rows)}
{MANY:,} runs grew the server and its workers by {grown / 1e6:.1f} MB (goal < 50 MB for 1,000).
{held} runs that wait for a person hold {max(processes, 0)} processes (goal 0).

{tokens()}"""


if __name__ == "__main__":
    print(section())
