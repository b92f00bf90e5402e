"""A gateway with scripts turned on: real servers, real sandboxes, a real store."""

import asyncio
import contextlib

from checkrein.store.runs import calls_of, get_run, latest_runs
from doors.gateway.house import SERVER, House
from patience import PATIENCE, soon

_SLEEPS = """        if gone.wait(float(arguments.get("seconds", 600))):
            return
"""
_IS_HELD = """        while not os.path.exists(LOG + ".go"):
            if gone.wait(0.02):
                return
"""
assert _SLEEPS in SERVER
# A server whose tool `slow` answers when it is released, and not before.
HELD = SERVER.replace(_SLEEPS, _IS_HELD)

WAIT = f"wait_seconds = {PATIENCE:g}\n"
SETTINGS = f"""
[evaluation]
{WAIT}
[evaluation.profiles.free]

[evaluation.profiles.safe]
allowlist = ["srv__read_notes", "srv__echo"]

[evaluation.profiles.supervised]
denylist = ["srv__delete_*"]
asklist = ["srv__*"]

[evaluation.profiles.trusting]
asklist = ["srv__*"]
elicitationFallback = "allow"
"""


class Bench:
    """A house whose settings allow scripts."""

    def __init__(self, house, user_settings):
        self.house, self._write = house, user_settings
        self.pipeline = house.pipeline
        self.settings(SETTINGS)

    def settings(self, text, **values):
        """Write the user's file; `values` go into [evaluation]."""
        lines = "".join(f"{key} = {value}\n" for key, value in values.items())
        self._write(text.replace("[evaluation]\n", f"[evaluation]\n{lines}", 1))

    def set(self, **values):
        text = SETTINGS.replace(WAIT, "") if "wait_seconds" in values else SETTINGS
        self.settings(text, **values)

    @property
    def hub(self):
        return self.house.hub

    @contextlib.asynccontextmanager
    async def opened(self, **more):
        async with self.house.opened(**more):
            self.hub.scripts.wake()
            yield self.hub

    async def reopened(self, house=None):
        """Another hub on the same folder, as after a restart."""
        house = house or House(self.pipeline, self.house.folder)
        house.specs = self.house.specs
        await house.open()
        house.hub.scripts.wake()
        return house

    def release(self, name="srv"):
        """Let the tool `slow` of a server that is held answer."""
        (self.house.folder / f"{name}.log.go").touch()

    def run_row(self, run_id):
        return get_run(self.pipeline.store, run_id)

    def last_run(self):
        # The clock of tests stands still, so moments do not say which came last.
        found = self.pipeline.store.query("SELECT id FROM run ORDER BY rowid DESC LIMIT 1")
        return get_run(self.pipeline.store, found[0][0])

    def begun(self):
        return bool(latest_runs(self.pipeline.store, 1))

    def rows(self, run_id=None):
        return calls_of(self.pipeline.store, run_id or self.last_run().id)

    def questions(self):
        rows = self.pipeline.store.query("SELECT entry FROM question WHERE state = 'asked' ORDER BY entry")
        return [row[0] for row in rows]

    async def answer(self, entry, word="approved", **more):
        await asyncio.to_thread(
            lambda: self.pipeline.answer(entry, word, actor="ada", channel="console", **more)
        )


def run(bench, work, *, servers=(("srv", {}),), source=SERVER, **opening):
    async def main():
        for name, env in servers:
            bench.house.server(name, env=env, source=source, trusted=True)
        async with bench.opened(**opening):
            await work()

    asyncio.run(main())


async def handed_in(guest, code, tool="eval", **arguments):
    """What a client hears first: an end, or that the script still runs or waits."""
    return await guest.call(tool, {"code": code, **arguments})


async def evaluate(guest, code, tool="eval", **arguments):
    """Hand a script in and come back until it does not run any more, however short a client's wait is."""
    return await _not_running(guest, await handed_in(guest, code, tool, **arguments))


async def resumed(guest, run_id):
    """Come back to a script until it does not run any more; what is said then."""
    return await _not_running(guest, await guest.call("resume_run", {"run_id": run_id}))


async def _not_running(guest, said):
    while (found := said.get("structuredContent", {})).get("status") == "running":
        said = await guest.call("resume_run", {"run_id": found["run_id"]})
    return said


def outcome(result):
    """The result of a script that came to its end."""
    assert result.get("isError") is not True, result
    return result["structuredContent"]["result"]


def failure(result):
    assert result["isError"], result
    return result["structuredContent"]["error"]


async def paused(guest, code, tool="codemode_eval_supervised", *, count=1, **arguments):
    """Start a script and come back until it waits for a person about so many calls; what is said then."""
    said = (await evaluate(guest, code, tool, **arguments))["structuredContent"]
    # They are put one after the other.
    while said["status"] == "paused" and len(said["waiting"]) < count:
        said = (await resumed(guest, said["run_id"]))["structuredContent"]
    assert said["status"] == "paused", said
    return said


async def resumed_to_the_end(bench, guest, run_id):
    """What a client hears of a script that is through."""
    await soon(lambda: bench.run_row(run_id).state in ("done", "failed"))
    return await resumed(guest, run_id)
