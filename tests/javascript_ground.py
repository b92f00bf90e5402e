"""What the tests of JavaScript scripts share: one compiled sandbox, tools that answer, processes counted."""

import asyncio
import atexit
import functools
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checkrein.execute.javascript import JavaScriptEngine
from checkrein.execute.sandbox import Answer, Limits, Paused, Tool
from checkrein.settings.sources import state_dir
from patience import PATIENCE

TOOLS = tuple(Tool(name) for name in ("fs__read", "fs__delete", "mail__send"))
# What is not about time has much of it; the rest says so.
LONG, SECOND = Limits(seconds=PATIENCE), Limits(seconds=1.0)


@functools.cache
def compiled():
    """Compiling takes seconds: once for all tests."""
    folder = Path(tempfile.mkdtemp(prefix="checkrein-js-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _filled():
    async def nothing(_engine):
        session = await _engine.open(TOOLS, LONG)
        await session.start("1")
        await session.close()

    # A browser's tests have a loop of their own in this thread.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(with_engine, nothing).result()
    return compiled()


def ready_made():
    """Lay what is compiled where this test's own server looks for it."""
    shutil.copytree(_filled(), state_dir() / "execute", dirs_exist_ok=True)


def with_engine(use, *, loop=None, **options):
    async def main():
        engine = JavaScriptEngine(compiled(), **options)
        try:
            return await use(engine)
        finally:
            await engine.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())


def echo(wanted):
    return Answer(value=wanted.arguments)


async def follow(session, step, answer=echo):
    """On to the end, every call answered."""
    while isinstance(step, Paused):
        step = await session.resume({wanted.id: answer(wanted) for wanted in step.wanted})
    return step


async def run_in(engine, source, answer=echo, limits=LONG, tools=TOOLS):
    session = await engine.open(tools, limits)
    try:
        return await follow(session, await session.start(source), answer)
    finally:
        await session.close()


def run(source, answer=echo, limits=LONG, tools=TOOLS):
    return with_engine(lambda engine: run_in(engine, source, answer, limits, tools))


def running(below=None):
    """The living processes below this one, with their resident bytes."""
    table = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b") ")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                table[int(folder.name)] = int(fields[1]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    found, sought = {}, {below or os.getpid()}
    while sought:
        sought = {pid for pid, (parent, _) in table.items() if parent in sought and pid not in found}
        found |= {pid: table[pid][1] for pid in sought}
    return found
