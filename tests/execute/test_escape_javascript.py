"""JavaScript that tries to get out: no file, no secret, no call past the gate, no harm to the host."""

import asyncio

import pytest
from ground import vectors

from checkrein.execute.javascript import JavaScriptEngine
from checkrein.execute.sandbox import Ended, Failed
from execute import escaping
from javascript_ground import compiled, running

ROWS = [row for row in vectors("escape.jsonl") if row["language"] in ("javascript", "typescript")]
LEAKED = "CANARY-7f3a91"


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    with escaping.canary(tmp_path_factory.mktemp("escape")) as folder:
        work = escaping.everything(
            lambda: JavaScriptEngine(compiled()), ROWS, folder, workers=running, at_once=4
        )
        return asyncio.run(work)


def test_there_is_something_to_try():
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_it_does_not_get_out(row, attempts):
    outcome = attempts[0][row["id"]]
    assert isinstance(outcome["step"], Ended | Failed)
    escaping.check(outcome)


def test_nothing_of_one_script_is_there_for_the_next(attempts):
    (row,) = [row for row in ROWS if "then" in row]
    assert attempts[0][row["id"]]["after"] == Ended([1])
    assert LEAKED not in repr(attempts[0][row["id"]]["after"])


def test_no_worker_can_be_constructed(attempts):
    assert attempts[0]["js-worker"]["step"].message == "ReferenceError: Worker is not defined"


def test_no_worker_grows_beyond_its_limit(attempts):
    assert 0 < attempts[1] < 300 << 20
    assert running() == {}
