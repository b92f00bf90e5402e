"""Who goes on with a call that waited."""

import pytest

from checkrein.errors import InputError, NotFoundError


def test_a_tool_that_is_not_wrapped_here_cannot_be_resumed(room):
    gate = room.open(asks="return")
    suspended = gate.wrap(lambda n: n, name="pick")(1)
    gate = room.open()
    with pytest.raises(NotFoundError, match="wraps no tool"):
        gate.resume(suspended.pending)
    with pytest.raises(InputError, match="no pending call"):
        gate.resume("{}")
