"""A whole server killed without a word, and another one that goes on: other processes, one folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

TESTS = Path(__file__).parents[4]
# What a server does: the first runs a script until it waits, the second hears the answer and goes on.
PROGRAM = r"""
import asyncio, json, sys
from pathlib import Path
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from doors.gateway.house import House
from doors.gateway.scripts.bench import evaluate, resumed
from patience import soon
part, folder, language, code = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]

async def first(house):
    guest = await house.guest(answers={})
    asyncio.ensure_future(evaluate(guest, code, "codemode_eval_careful", language=language))
    await soon(lambda: house.pipeline.store.query("SELECT 1 FROM question"))
    await soon(lambda: house.ran("slow"))
    print("waiting", flush=True)
    await asyncio.sleep(600)

async def second(house):
    house.hub.scripts.wake()
    (entry,) = [row[0] for row in house.pipeline.store.query("SELECT entry FROM question")]
    await asyncio.to_thread(
        lambda: house.pipeline.answer(entry, "approved", actor="ada", channel="console"))
    guest = await house.guest()
    run_id = house.pipeline.store.query("SELECT id FROM run")[0][0]
    result = await resumed(guest, run_id)
    ran = {name: len(house.ran(name)) for name in ("echo", "slow", "read_notes")}
    print(json.dumps({"result": result["structuredContent"], "ran": ran}), flush=True)
    await house.close()

async def main():
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    house = House(pipeline, folder)
    house.server("srv", trusted=True)
    await house.open()
    await (first if part == "first" else second)(house)
    pipeline.close()

asyncio.run(main())
"""
SETTINGS = """
[evaluation]
wait_seconds = 30
[evaluation.profiles.careful]
asklist = ["srv__echo"]
"""
CODE = {
    "javascript": """
const before = (await codemode.srv__read_notes({})).content[0].text;
const [asked, slow] = await Promise.allSettled([
  codemode.srv__echo({n: 1}), codemode.srv__slow({seconds: 60})]);
return [before, asked.value.content[0].text, slow.reason.message];""",
    "python": """
import asyncio
before = (await codemode.srv__read_notes())["content"][0]["text"]
async def slow():
    try:
        await codemode.srv__slow(seconds=60)
    except Exception as error:
        return str(error)
asked, said = await asyncio.gather(codemode.srv__echo(n=1), slow())
[before, asked["content"][0]["text"], said]""",
}


def server(part, folder, language):
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", PROGRAM, part, str(folder), language, CODE[language]]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_a_server_that_is_killed_loses_nothing_and_nothing_runs_twice(user_settings, tmp_path, language):
    user_settings(SETTINGS)
    killed = server("first", tmp_path, language)
    assert killed.stdout.readline() == "waiting\n"
    killed.kill()
    killed.communicate()
    other = server("second", tmp_path, language)
    out, _ = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0
    found = json.loads(out)
    assert found["result"]["status"] == "done", found
    before, asked, slow = found["result"]["result"]
    assert (before, asked) == ("said {}", 'said {"n": 1}') and "unknown" in slow
    assert found["ran"] == {"echo": 1, "slow": 1, "read_notes": 1}
