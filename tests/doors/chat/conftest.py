"""What the tests of conversations stand on."""

import pytest

from chat_ground import Rules, Talk, Tools, opened, tool

GET = tool("notes__get", annotations={"readOnlyHint": True})
PUT = tool("notes__put")


@pytest.fixture
def talking():
    """Makes chats over one store, one after another as servers are; all are closed at the end."""
    made = []

    def make(*tools, pipeline=None, **more):
        pipeline = pipeline or opened()
        made.append(Talk(pipeline, Tools(pipeline, *(tools or (GET, PUT))), **more))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()


@pytest.fixture
def talk(talking):
    return talking()


@pytest.fixture
def rules(talk):
    return Rules(talk.pipeline)
