"""A session of Google's ADK goes on in another process, and runs each call once."""

import json
import sys

import pytest

from doors.library.adapters.lazily import Lazily
from doors.library.adapters.programs import stepping

sdk = Lazily("doors.library.adapters.adk_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("google.adk", reason="Google's ADK is not installed")


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[2])
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from checkrein import Gate
from checkrein.doors.library.adapters.google_adk import gated
from doors.library.adapters.adk_ground import House, asked, call, confirm

folder = Path(sys.argv[1])

def book(to: str, amount: int = 1) -> str:
    with (folder / "booked").open("a") as file:
        file.write(f"{to} {amount}\\n")
    return f"booked {to}"

async def main(step):
    sessions = SqliteSessionService(str(folder / "sessions.db"))
    turns = [[call("book", each, to=each) for each in ("ada", "eve")]] if step == "begin" else []
    with Gate(folder / "gate", project=folder, session="s", asks="raise") as gate:
        house = House(gated(gate, [book]), *turns, sessions=sessions)
        if step == "begin":
            (folder / "asked").write_text(json.dumps(asked(await house.say())))
            return
        ids = json.loads((folder / "asked").read_text())
        await house.say(confirm(ids["ada"]), confirm(ids["eve"], False, {"message": "not eve"}))
        return house.model.told() if house.model.requests else None
"""


def test_a_session_goes_on_in_another_process_and_twice_runs_once(tmp_path):
    paths = json.dumps([each for each in sys.path if each])
    with stepping(PROGRAM, tmp_path, paths) as process:
        process("begin")
        assert not (tmp_path / "booked").exists()
        (tmp_path / "before.db").write_bytes((tmp_path / "sessions.db").read_bytes())
        told = process("go on")
        assert (tmp_path / "booked").read_text() == "ada 1\n"
        assert told["ada"] == {"result": "booked ada"} and "not eve" in told["eve"]["error"]

        # The ADK drops a confirmation it has seen; a copy of the session from before has not.
        process("go on")
        (tmp_path / "sessions.db").write_bytes((tmp_path / "before.db").read_bytes())
        told = process("go on")
        assert (tmp_path / "booked").read_text() == "ada 1\n"
        assert "used before" in told["ada"]["error"]
