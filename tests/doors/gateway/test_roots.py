"""The project a client's calls belong to."""

import asyncio
from pathlib import Path

import pytest

from checkrein.doors.gateway import roots as roots_module
from checkrein.doors.gateway.clients import Client, Flight, Visit
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS
from checkrein.doors.gateway.roots import project


class Exchange:
    """Answers what the client is asked with what it is told to."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def send(self, message):
        if message["method"] == "roots/list":
            self.asked.append(message)
            if self.answer is not None:
                asyncio.get_running_loop().call_soon(
                    self.client.answered, {"id": message["id"], **self.answer}
                )


def found(answer, era=HANDSHAKE, capabilities=None, times=1):
    exchange = Exchange(answer)
    client = Client(era=era, agent="a", label="l", owner="o", visit=Visit("s"), send=pytest.fail)
    client.capabilities = {"roots": {}} if capabilities is None else capabilities
    exchange.client = client

    async def main():
        return [await project(client, Flight(client, 1, exchange)) for _ in range(times)]

    return asyncio.run(main()), exchange


def roots(*uris):
    return {"result": {"roots": [{"uri": uri} for uri in uris]}}


def test_the_first_folder_is_the_project_and_asked_for_once(request, tmp_path):
    where = Path(request.getfixturevalue("project"))
    (where / "sub dir").mkdir()
    (one, two), exchange = found(
        roots("http://x", (tmp_path / "gone").as_uri(), (where / "sub dir").as_uri()), times=2
    )
    assert one == two == str(where) and len(exchange.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -1, "message": "no"}},
        {"result": None},
        {"result": []},
        {"result": {"roots": "x"}},
        {"result": {"roots": [None, 7, {}, {"uri": 7}]}},
        roots("file://[", "file://", "file:///no/such", "file:///" + "x" * 5000, "file:///%00", "relative"),
    ],
)
def test_who_names_no_folder_belongs_to_the_default(answer):
    (where,), _ = found(answer)
    assert where == "default"


def test_who_does_not_answer_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(roots_module, "_SECONDS", 0.05)
    (where,), _ = found(None)
    assert where == "default"


@pytest.mark.parametrize(("era", "capabilities"), [(STATELESS, {"roots": {}}), (HANDSHAKE, {})])
def test_who_cannot_be_asked_is_not(era, capabilities):
    (where,), exchange = found(roots("file:///"), era, capabilities)
    assert where == "default" and exchange.asked == []
