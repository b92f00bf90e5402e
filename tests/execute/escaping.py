"""What scripts that try to get out are let loose on: a gate as policy would be, and a canary."""

import asyncio
import contextlib
import os

from ground import FULL

from checkrein.execute.sandbox import Answer, Limits, Paused, Tool
from patience import PATIENCE

TOOLS = tuple(Tool(name) for name in ("safe__read", "danger__delete", "scoped__write"))
MEMORY = 64 << 20
# Of those that try to get out many never end by themselves; what is to succeed has much time.
LIMITS = Limits(seconds=1.0 if FULL else 0.5, memory=MEMORY)
LONG = Limits(seconds=PATIENCE, memory=MEMORY)
SECRET = "canary-6f1e77"


def text_of(row, canary, pwn):
    script = row.get("script") or "".join(part * times for part, times in row["script_parts"])
    return script.replace("@CANARY@", str(canary)).replace("@PWN@", str(pwn))


def is_safe(path):
    return type(path) is str and os.path.normpath(path).startswith("/safe/")


def gate(wanted, executed):
    """As the policy would: one tool free, one denied, one free under /safe/ only."""
    scoped = wanted.name == "scoped__write" and is_safe(wanted.arguments.get("path"))
    if wanted.name != "safe__read" and not scoped:
        return Answer(denied="policy")
    executed.append((wanted.name, wanted.arguments))
    return Answer(value="fine")


async def attempt(engine, script, then="", limits=LIMITS):
    """What one script came to; `then` is run after it."""
    executed = []
    session = await engine.open(TOOLS, limits)
    step = await session.start(script)
    said = [repr(step)]
    while isinstance(step, Paused):
        step = await session.resume({wanted.id: gate(wanted, executed) for wanted in step.wanted})
        said.append(repr(step))
    await session.close()
    after = (await attempt(engine, then, limits=LONG))["step"] if then else None
    return {"step": step, "said": "".join(said), "executed": executed, "after": after}


async def everything(make, rows, folder, *, workers, at_once):
    """All attempts by their ids, and the most memory a worker had meanwhile."""
    engine, outcomes, largest = make(), {}, 0
    room = asyncio.Semaphore(at_once)

    async def one(row):
        pwn = folder / f"pwn-{row['id']}"
        async with room:
            script = text_of(row, folder / "canary", pwn)
            outcomes[row["id"]] = await attempt(engine, script, row.get("then", "")) | {"pwn": pwn}

    under_way = asyncio.gather(*(one(row) for row in rows))
    while not under_way.done():
        largest = max([largest, *workers().values()])
        await asyncio.sleep(0.02)
    await under_way
    await engine.close()
    return outcomes, largest


@contextlib.contextmanager
def canary(folder):
    """A secret in a file and in the environment."""
    (folder / "canary").write_text(SECRET)
    os.environ["CODEMODE_CANARY"] = SECRET
    try:
        yield folder
    finally:
        del os.environ["CODEMODE_CANARY"]


def check(outcome):
    """It did not get out."""
    assert not outcome["pwn"].exists()
    assert SECRET not in outcome["said"]
    assert all(name != "danger__delete" for name, _ in outcome["executed"])
    assert all(
        is_safe(arguments["path"]) for name, arguments in outcome["executed"] if name == "scoped__write"
    )
    assert len(outcome["said"]) < 2 << 20
