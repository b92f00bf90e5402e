import csv
import io
import json

import pytest

from checkrein.call import tool_call
from checkrein.ledger.entries import Entry
from checkrein.ledger.export import FORMATS, export
from checkrein.ledger.query import Filter, entries

NASTY = [
    '=HYPERLINK("http://x")',
    "+1",
    "-1+2",
    "@SUM(A1)",
    "\tx",
    "\rx",
    'quote " and, comma',
    "line\nbreak",
    "日本語",
]


@pytest.fixture
def found(pipeline):
    for text in NASTY:
        pipeline.decide(tool_call({"tool": text, "arguments": {"x": text}, "session": text}))
    return lambda: entries(pipeline.store, Filter())


def text(found, form):
    return "".join(export(found(), form))


def test_json_and_jsonl_hold_the_same_entries(found):
    whole = json.loads(text(found, "json"))
    assert [json.loads(line) for line in text(found, "jsonl").splitlines()] == whole
    assert [each["tool_name"] for each in whole] == list(reversed(NASTY))
    assert set(whole[0]) == set(Entry.__struct_fields__)


def test_csv_reads_back_and_runs_no_formula(found):
    rows = list(csv.DictReader(io.StringIO(text(found, "csv"), newline="")))
    assert len(rows) == len(NASTY)
    for row, wanted in zip(rows, reversed(NASTY), strict=True):
        # INVARIANT: no cell of text can start a formula in a spreadsheet.
        assert row["tool_name"].lstrip("'") == wanted
        for name, cell in row.items():
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), name
        assert not row["session_id"].startswith("-")
    assert float(rows[0]["complexity"]) == 0.5


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_record_exports_as_nothing(form):
    made = "".join(export(iter(()), form))
    assert made.count("\n") == {"csv": 1, "json": 2, "jsonl": 0}[form]
    if form == "json":
        assert json.loads(made) == []
