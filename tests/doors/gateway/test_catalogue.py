"""What is offered: only what a person accepted, in exactly that version."""

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from checkrein.call import digest
from checkrein.doors.gateway.catalogue import Catalogue
from checkrein.errors import InputError

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = {"name": "read_file", "description": "Reads a file.", "inputSchema": SCHEMA}


@pytest.fixture
def catalogue(pipeline, clock):
    return Catalogue(pipeline.store, pipeline.ledger, clock)


def learn(catalogue, server, *tools, prompts=(), instructions=""):
    return catalogue.learn(server, tools=list(tools), prompts=list(prompts), instructions=instructions)


def accept(catalogue, server, clock=None):
    rows = [row for row in catalogue.review(server) if row["state"] != "unusable"]
    return catalogue.accept(server, rows, "ada")


def names(catalogue):
    return [tool["name"] for tool in catalogue.tools()]


def events(pipeline, kind):
    rows = pipeline.store.query("SELECT body FROM record WHERE kind = ? ORDER BY seq", (kind,))
    return [msgspec.json.decode(row[0])["data"] for row in rows]


def test_a_new_tool_is_hidden_until_a_person_accepts_it(catalogue):
    assert learn(catalogue, "fs", READ) == frozenset()
    assert catalogue.tools() == [] and catalogue.tool("fs__read_file") is None
    assert catalogue.hidden("fs__read_file") == "Nobody has accepted it yet."
    assert accept(catalogue, "fs") == {"tools"}
    assert catalogue.tools() == [{**READ, "name": "fs__read_file"}]
    offered = catalogue.tool("fs__read_file")
    assert (offered.server, offered.tool, offered.hash) == ("fs", "read_file", digest(READ))
    assert catalogue.hidden("fs__read_file") == ""
