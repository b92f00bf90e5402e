"""The authority over a real store, asked by this very process."""

import pytest

from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.ledger.entries import body_of_row
from checkrein.store import records
from standing_gateway import Standing, through


@pytest.fixture
def asked(pipeline):
    return Asked(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), myself())


@pytest.fixture
def do(asked):
    """Performs a verb as a person at a terminal."""
    return lambda name, /, **params: perform(asked, name, params)


@pytest.fixture
def recorded(pipeline):
    """What was recorded of a kind, oldest first."""
    return lambda kind: [
        body_of_row(row)["data"] for row in records.after(pipeline.store, 0) if row[2] == kind
    ]


@pytest.fixture
def question(pipeline, project):
    """Somebody asks about a command in the building phase; the id of the question."""
    switch(pipeline, "building", "ada", "terminal")

    def ask(command="make x", session="s1"):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": session}
        decided = pipeline.decide(tool_call({**raw, "door": "hooks"}), asking=True)
        assert decided.verdict.word == "ask", decided.verdict
        return decided.entry

    return ask


@pytest.fixture
def gateway():
    return Standing()


@pytest.fixture
def files(asked, gateway):
    """A server that is there already; the gateway has forgotten how it came."""
    entry = {"command": "serve-files", "args": ["/tmp"]}
    through(asked, gateway)("upstream.add", name="files", entry=entry)
    gateway.done.clear()
