"""Timing without surprises: many samples, the median and the 99th percentile, in microseconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Microseconds."""

    p50: float
    p99: float


def timed(work: Callable[[Any], Any], inputs: Iterable[Any]) -> Timing:
    """One sample per input; garbage collection is kept out of the samples."""
    samples = []
    gc.collect()
    gc.disable()
    try:
        for each in inputs:
            begin = time.perf_counter_ns()
            work(each)
            samples.append((time.perf_counter_ns() - begin) / 1000)
    finally:
        gc.enable()
    samples.sort()
    return Timing(samples[len(samples) // 2], samples[int(len(samples) * 0.99)])


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def micro(value: float) -> str:
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.2f} ms"
