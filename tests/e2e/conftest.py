"""Real agents with Checkrein installed, each in a home of its own; `clients/npm.py` fetches the programs."""

import subprocess

import pytest

from e2e.clients.claude import Claude
from e2e.clients.house import House
from e2e.clients.processes import as_user


@pytest.fixture
def house():
    made = House()
    yield made
    made.leave()


@pytest.fixture
def somebodys_house():
    """For an agent that is told to skip every question of its own, which it refuses to do as root."""
    made = House(root=False)
    if made.uid is not None:
        tried = subprocess.run(as_user(["true"], made.uid), capture_output=True, text=True, check=False)
        if tried.returncode:
            pytest.skip(f"root cannot be somebody else here: {tried.stderr.strip()}")
    yield made
    made.leave()


@pytest.fixture
def claude(house):
    """Claude Code in a project with our hooks."""
    found = Claude(house)
    house.install(found.agent)
    return found


@pytest.fixture
def fearless(somebodys_house):
    """Claude Code with `--permission-mode bypassPermissions` in reach."""
    found = Claude(somebodys_house)
    somebodys_house.install(found.agent)
    return found
