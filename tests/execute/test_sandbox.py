"""What a sandbox is: both engines are one, and limits that nobody set are the documented ones."""

import asyncio
import inspect

import msgspec
import pytest

from checkrein.execute import sandbox
from checkrein.execute.javascript import JavaScriptEngine
from checkrein.execute.python import PythonEngine


@pytest.mark.parametrize("engine", [JavaScriptEngine, PythonEngine])
def test_every_engine_does_what_the_door_asks_of_one(engine):
    for name in ("open", "load", "close"):
        wanted = inspect.signature(getattr(sandbox.Engine, name)).parameters
        found = inspect.signature(getattr(engine, name)).parameters
        assert set(wanted) <= set(found), name
        assert inspect.iscoroutinefunction(getattr(engine, name)), name


def test_values_cross_as_they_are():
    wanted = sandbox.Wanted(1, "fs__read", {"path": "a"}, 3, 4)
    paused = sandbox.Paused((wanted,), "said")
    assert msgspec.json.decode(msgspec.json.encode(paused), type=sandbox.Paused) == paused


def test_what_is_suspended_is_never_changed_in_place():
    with pytest.raises(AttributeError):
        sandbox.Answer(value=1).value = 2


@pytest.mark.parametrize("fault", [sandbox.DamagedError("It is damaged."), asyncio.CancelledError()])
def test_a_session_that_cannot_take_up_what_was_left_is_not_left_running(fault):
    class Broken:
        closed = False

        async def restore(self, state):
            assert state == "state"
            raise fault

        async def close(self):
            self.closed = True

    session = Broken()
    with pytest.raises(type(fault)):
        asyncio.run(sandbox.restored(session, "state"))
    assert session.closed
