"""What a sandbox is: both engines are one, and limits that nobody set are the documented ones."""

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
