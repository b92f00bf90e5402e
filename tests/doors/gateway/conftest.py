"""What the tests of the gateway's middle stand on."""

import pytest

from checkrein.store.rules import add_rule, delete_rule
from doors.gateway.house import House
from doors.gateway.visitor import Visitor


@pytest.fixture
def house(pipeline, tmp_path):
    return House(pipeline, tmp_path)


@pytest.fixture
def add(pipeline):
    """Writes a rule, as a person does."""

    def put(action, tool, server="srv", **more):
        named = "pattern" if "*" in tool else "tool"
        body = {"action": action, named: tool, "server": server, **more}
        name = f"{action}-{tool}".replace("*", "any")
        pipeline.store.write(lambda tx: add_rule(tx, name, body, 1.0))
        return lambda: pipeline.store.write(lambda tx: delete_rule(tx, name))

    return put


@pytest.fixture
def visitor(pipeline, house, add):
    """A gateway whose server `srv` is trusted, and whose calls are all allowed."""
    house.server(trusted=True)
    made = Visitor(pipeline, house, [])
    made.allow_no_more = add("allow", "*")
    yield made
    made.close()
