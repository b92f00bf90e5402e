"""What a gate costs a call that is allowed: beside the bare function, in the same run, record committed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measure import Timing, micro, table, timed
from checkrein import Gate

CALLS = 3_000
GOAL = 300.0
IMPORT_GOAL = 4.0
STARTS = 15


def bare(n: int, city: str = "Kyoto") -> str:
    return f"{city} {n}"


async def bare_async(n: int, city: str = "Kyoto") -> str:
    return f"{city} {n}"


@contextlib.contextmanager
def fresh() -> Iterator[Path]:
    """A home of its own, where a rule allows the tool."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
        kept = {name: os.environ.get(name) for name in names}
        os.environ.update({name: f"{folder}/{name}" for name in names})
        settings = Path(folder, "XDG_CONFIG_HOME", "checkrein", "config.toml")
        settings.parent.mkdir(parents=True)
        settings.write_text('[[rules]]\naction = "allow"\npattern = "bare*"\n', encoding="utf-8")
        try:
            yield Path(folder)
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def asynchronous(tool: Callable[[int], Any], numbers: range) -> Timing:
    async def main() -> list[float]:
        samples = []
        for n in numbers:
            begin = time.perf_counter_ns()
            await tool(n)
            samples.append((time.perf_counter_ns() - begin) / 1000)
        return samples

    gc.collect()
    gc.disable()
    try:
        samples = sorted(asyncio.run(main()))
    finally:
        gc.enable()
    return Timing(samples[len(samples) // 2], samples[int(len(samples) * 0.99)])


def calls() -> list[list[str]]:
    with fresh() as folder, Gate(folder / "gate", project=folder) as gate:
        gated, gated_async = gate.wrap(bare), gate.wrap(bare_async)
        for n in range(300):
            gated(n)
        plain = timed(bare, range(CALLS))
        wrapped = timed(gated, range(CALLS))
        plain_async = asynchronous(bare_async, range(CALLS))
        wrapped_async = asynchronous(gated_async, range(CALLS))
        gate.flush()
        count = gate.authority.pipeline.store.query("SELECT count(*) FROM record")[0][0]  # type: ignore[attr-defined]
        # Every call has its verdict and its outcome on the record.
        if count != 2 * (300 + 2 * CALLS):
            raise AssertionError(f"{count} records")
    return [
        row("function, gated", wrapped, plain),
        row("asynchronous function, gated", wrapped_async, plain_async),
    ]


def row(name: str, gated: Timing, plain: Timing) -> list[str]:
    cost = gated.p50 - plain.p50
    met = "met" if cost <= GOAL else "**missed**"
    return [
        name,
        micro(plain.p50),
        micro(gated.p50),
        micro(gated.p99),
        micro(cost),
        f"≤ {micro(GOAL)}: {met}",
    ]


def seconds_to(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def importing() -> list[list[str]]:
    """In turns, so that whatever else the machine does weighs on both."""
    rounds = [(seconds_to("pass"), seconds_to("import checkrein")) for _ in range(STARTS)]
    nothing, package = (sorted(each)[STARTS // 2] for each in zip(*rounds, strict=True))
    ratio = package / nothing
    met = "met" if ratio <= IMPORT_GOAL else "**missed**"
    return [
        ["`python -c pass`", f"{nothing * 1000:.1f} ms", "", ""],
        [
            "`import checkrein`",
            f"{package * 1000:.1f} ms",
            f"{ratio:.2f} ×",
            f"≤ {IMPORT_GOAL:g} ×: {met}",
        ],
    ]


def section() -> str:
    head = ["allowed call, store of its own", "bare p50", "gated p50", "gated p99", "cost p50", "goal"]
    shown = table(head, calls())
    starts = table(["starting", "median", "ratio", "goal"], importing())
    said = "The verdict is committed before the function runs; its outcome follows within 50 ms.\n"
    return f"## Library\n\n{shown}\n{said}\n{starts}"


if __name__ == "__main__":
    print(section())
