"""Python scripts under test: an engine, a gate and what came out."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from checkrein.execute.python import PythonEngine
from checkrein.execute.sandbox import Answer, Limits, Paused, Tool
from patience import PATIENCE, until

TOOLS = tuple(Tool(name) for name in ("fs__read", "fs__delete", "mail__send"))
# What is not about time has much of it; the rest says so.
LONG, SECOND = Limits(seconds=PATIENCE), Limits(seconds=1.0)


def echo(wanted):
    return Answer(value=wanted.arguments)


async def follow(session, step, answer=echo, seen=None):
    """To the end, every call answered as soon as it is asked."""
    while isinstance(step, Paused):
        if seen is not None:
            seen.append(step.wanted)
        step = await session.resume({wanted.id: answer(wanted) for wanted in step.wanted})
    return step


async def run_in(engine, source, *, answer=echo, limits=LONG, stubs="", tools=TOOLS, seen=None):
    session = await engine.open(tools, limits, stubs=stubs)
    try:
        return await follow(session, await session.start(source), answer, seen)
    finally:
        await session.close()


def with_engine(use, **options):
    """`use(engine)` on a loop of its own, with nothing left running."""

    async def main():
        engine = PythonEngine(**options)
        try:
            return await use(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def run(source, **options):
    return with_engine(lambda engine: run_in(engine, source, **options))


def workers():
    """The processes this one started that are interpreters: pid and resident bytes."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        # A thread, or a process, may end while it is looked at.
        with contextlib.suppress(OSError):
            for pid in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    if "monty" in Path(f"/proc/{pid}/comm").read_text():
                        found[int(pid)] = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    return found


def freeze(pid):
    """Stop a process where it is, and wait until it is."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")


def state(pid):
    """The letter of a process's state, or nothing where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
