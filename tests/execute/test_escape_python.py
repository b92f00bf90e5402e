"""Scripts that try to get out, in Python: no file, no secret, no call past the gate, no harm to the host."""

import asyncio
import os

import pytest
from ground import vectors

from checkrein.execute.python import PythonEngine
from checkrein.execute.sandbox import Answer, Limits, Paused, Tool
from scripts import workers

ROWS = [row for row in vectors("escape.jsonl") if row["language"] == "python"]
TOOLS = tuple(Tool(name) for name in ("safe__read", "danger__delete", "scoped__write"))
LIMITS = Limits(seconds=1.0, memory=64 << 20)
SECRET = "canary-6f1e77"
AT_ONCE = 6


def text_of(row, canary, pwn):
    script = row.get("script") or "".join(part * times for part, times in row["script_parts"])
    return script.replace("@CANARY@", str(canary)).replace("@PWN@", str(pwn))


def gate(wanted, executed):
    """As the policy would: one tool free, one denied, one free under /safe/ only."""
    path = wanted.arguments.get("path")
    free = wanted.name == "safe__read" or (
        wanted.name == "scoped__write" and type(path) is str and os.path.normpath(path).startswith("/safe/")
    )
    if not free:
        return Answer(denied="policy")
    executed.append((wanted.name, wanted.arguments))
    return Answer(value="fine")


async def attempt(engine, script):
    executed, began = [], asyncio.get_running_loop().time()
    session = await engine.open(TOOLS, LIMITS)
    step = await session.start(script)
    said = [repr(step)]
    while isinstance(step, Paused):
        step = await session.resume({wanted.id: gate(wanted, executed) for wanted in step.wanted})
        said.append(repr(step))
    await session.close()
    return {
        "step": step,
        "said": "".join(said),
        "executed": executed,
        "seconds": asyncio.get_running_loop().time() - began,
    }


async def everything(folder):
    engine, outcomes, largest = PythonEngine(), {}, 0
    room = asyncio.Semaphore(AT_ONCE)

    async def one(row):
        pwn = folder / f"pwn-{row['id']}"
        async with room:
            outcomes[row["id"]] = await attempt(engine, text_of(row, folder / "canary", pwn)) | {"pwn": pwn}

    running = asyncio.gather(*(one(row) for row in ROWS))
    while not running.done():
        largest = max([largest, *workers().values()])
        await asyncio.sleep(0.02)
    await running
    await engine.close()
    return outcomes, largest


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("escape")
    (folder / "canary").write_text(SECRET)
    os.environ["CODEMODE_CANARY"] = SECRET
    try:
        return asyncio.run(everything(folder))
    finally:
        del os.environ["CODEMODE_CANARY"]


def test_there_is_something_to_try():
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_it_does_not_get_out(row, attempts):
    outcome = attempts[0][row["id"]]
    assert not outcome["pwn"].exists()
    assert SECRET not in outcome["said"]
    assert all(name != "danger__delete" for name, _ in outcome["executed"])
    assert all(
        os.path.normpath(arguments["path"]).startswith("/safe/")
        for name, arguments in outcome["executed"]
        if name == "scoped__write"
    )
    assert outcome["seconds"] < 8
    assert len(outcome["said"]) < 2 << 20


def test_no_worker_grows_beyond_its_limit(attempts):
    assert 0 < attempts[1] < 256 << 20
    assert workers() == {}
