"""JavaScript that tries to get out: no file, no secret, no call past the gate, no harm to the host."""

import asyncio
import os

import pytest
from ground import vectors

from checkrein.execute.javascript import JavaScriptEngine
from checkrein.execute.sandbox import Answer, Ended, Failed, Limits, Paused, Tool
from javascript_ground import compiled, running

ROWS = [row for row in vectors("escape.jsonl") if row["language"] in ("javascript", "typescript")]
TOOLS = tuple(Tool(name) for name in ("safe__read", "danger__delete", "scoped__write"))
LIMITS = Limits(seconds=1.0, memory=64 << 20)
SECRET = "canary-6f1e77"
LEAKED = "CANARY-7f3a91"
AT_ONCE = 4


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


async def attempt(engine, script, then=""):
    executed, began = [], asyncio.get_running_loop().time()
    session = await engine.open(TOOLS, LIMITS)
    step = await session.start(script)
    said = [repr(step)]
    while isinstance(step, Paused):
        step = await session.resume({wanted.id: gate(wanted, executed) for wanted in step.wanted})
        said.append(repr(step))
    await session.close()
    seconds = asyncio.get_running_loop().time() - began
    after = (await attempt(engine, then))["step"] if then else None
    return {"step": step, "said": "".join(said), "executed": executed, "seconds": seconds, "after": after}


async def everything(folder):
    engine, outcomes, largest = JavaScriptEngine(compiled()), {}, 0
    room = asyncio.Semaphore(AT_ONCE)

    async def one(row):
        pwn = folder / f"pwn-{row['id']}"
        async with room:
            script = text_of(row, folder / "canary", pwn)
            outcomes[row["id"]] = await attempt(engine, script, row.get("then", "")) | {"pwn": pwn}

    under_way = asyncio.gather(*(one(row) for row in ROWS))
    while not under_way.done():
        largest = max([largest, *running().values()])
        await asyncio.sleep(0.02)
    await under_way
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
    assert isinstance(outcome["step"], Ended | Failed)
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


def test_nothing_of_one_script_is_there_for_the_next(attempts):
    (row,) = [row for row in ROWS if "then" in row]
    assert attempts[0][row["id"]]["after"] == Ended([1])
    assert LEAKED not in repr(attempts[0][row["id"]]["after"])


def test_no_worker_can_be_constructed(attempts):
    assert attempts[0]["js-worker"]["step"].message == "ReferenceError: Worker is not defined"


def test_no_worker_grows_beyond_its_limit(attempts):
    assert 0 < attempts[1] < 300 << 20
    assert running() == {}
