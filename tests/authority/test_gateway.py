"""The gateway as other threads see it: what is promised of it is there, and where none runs that is said."""

import inspect

import pytest

from checkrein.authority import perform
from checkrein.authority.gateway import Gateway
from checkrein.doors.gateway import gateway as real
from checkrein.errors import InputError

PROMISED = [name for name in vars(Gateway) if not name.startswith("_")]


@pytest.mark.parametrize("name", PROMISED)
def test_the_gateway_does_what_is_promised_of_it(name):
    promised, made = (inspect.signature(getattr(each, name)).parameters for each in (Gateway, real.Gateway))
    needed = [each for each in made if each in promised or made[each].default is inspect.Parameter.empty]
    assert needed == list(promised)


def test_without_a_server_the_file_can_be_seen_and_nothing_runs(asked):
    perform(asked, "upstream.add", {"name": "a", "entry": {"command": "x"}})
    assert [each["state"] for each in perform(asked, "upstream.list", {})["servers"]] == ["stopped"]
    assert perform(asked, "upstream.browse", {}) == perform(asked, "upstream.review", {}) == []
    for name in ("start", "restart", "logs", "test"):
        with pytest.raises(InputError, match="running server"):
            perform(asked, f"upstream.{name}", {"name": "a"})
