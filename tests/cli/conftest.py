"""Runs commands as a user would, in the test's own home and project."""

import json
import os

import pytest
from click.testing import CliRunner

from checkrein.cli import checkrein


class Run:
    """Calls a command; remembers what it printed."""

    def __init__(self):
        self.runner = CliRunner()

    def __call__(self, *words, input=None, code=0):
        done = self.runner.invoke(checkrein, words, input=input, prog_name="checkrein")
        assert done.exit_code == code, f"{words} exited {done.exit_code}:\n{done.output}\n{done.exception!r}"
        return done.stdout if code == 0 else done.output

    def json(self, *words, input=None, code=0):
        done = self.runner.invoke(checkrein, words, input=input, prog_name="checkrein")
        assert done.exit_code == code, f"{words} exited {done.exit_code}:\n{done.output}\n{done.exception!r}"
        return json.loads(done.stdout)


@pytest.fixture
def run(project, monkeypatch):
    monkeypatch.chdir(project)
    return Run()


@pytest.fixture
def pid():
    return os.getpid()
