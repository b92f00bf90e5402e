"""What the contract suite stands on: a world for each case, and a door of each kind over it."""

from pathlib import Path

import pytest

from checkrein.store.sqlite import SqliteStore
from lifecycle.cases import Scene
from lifecycle.drivers.api import Api
from lifecycle.drivers.chat import Chat
from lifecycle.drivers.eval import Eval
from lifecycle.drivers.gateway import Gateway
from lifecycle.drivers.hooks import Hooks
from lifecycle.drivers.library import Library
from lifecycle.world import FrailStore, World

DRIVERS = {each.name: each for each in (Hooks, Gateway, Eval, Chat, Library, Api)}


class _Frail:
    @staticmethod
    def open(folder, **how):
        return FrailStore(SqliteStore.open(folder, **how))


@pytest.fixture
def world(clock, project, monkeypatch):
    # An embedded gate opens its own store, and has no argument for another one.
    monkeypatch.setattr("checkrein.doors.library.embedded.SqliteStore", _Frail)
    made = World(clock, project)
    yield made
    made.close()


@pytest.fixture
def stage(world, monkeypatch):
    """Opens a door by its name; the scene a case is played in."""
    opened = []

    def open_door(name):
        driver = DRIVERS[name](world)
        if hasattr(driver, "server"):
            monkeypatch.setattr("checkrein.doors.gateway.keeper.pipe_for", driver.server.pipe_for)
        opened.append(driver)
        return Scene(driver, Path(world.project))

    yield open_door
    for each in opened:
        each.killed() if world.store.dead else each.close()
