"""Scripts that try to get out, in Python: no file, no secret, no call past the gate, no harm to the host."""

import asyncio

import pytest
from ground import vectors

from checkrein.execute.python import PythonEngine
from execute import escaping
from scripts import workers

ROWS = [row for row in vectors("escape.jsonl") if row["language"] == "python"]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    with escaping.canary(tmp_path_factory.mktemp("escape")) as folder:
        return asyncio.run(escaping.everything(PythonEngine, ROWS, folder, workers=workers, at_once=6))


def test_there_is_something_to_try():
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_it_does_not_get_out(row, attempts):
    escaping.check(attempts[0][row["id"]])


def test_no_worker_grows_beyond_its_limit(attempts):
    assert 0 < attempts[1] < 256 << 20
    assert workers() == {}
