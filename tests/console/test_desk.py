import pytest

from checkrein.console.desk import Desk
from checkrein.errors import InputError
from checkrein.peers import Peer


@pytest.fixture
def desk(pipeline, agents):
    return Desk(pipeline, agents, None)


def test_what_is_asked_is_asked_as_the_person_signed_in(desk, project):
    desk.ask("phase.set", name="planning", project=project)
    assert desk.ask("phase.show", project=project)["phase"] == "planning"
    assert desk.actor


def test_a_request_this_server_does_not_know_is_none(desk):
    assert desk.offered("nothing.known") is None
    with pytest.raises(InputError):
        desk.ask("nothing.known")
    with pytest.raises(InputError):
        desk.offered("phase.set", name="dreaming")


def test_it_answers_to_loopback_names_only(desk):
    desk.port = 7331
    assert desk.hosts() == {"127.0.0.1:7331", "localhost:7331"}


def test_failures_are_kept_but_not_without_end(desk):
    for number in range(50):
        try:
            raise RuntimeError(f"number {number}")
        except RuntimeError as error:
            desk.failed(error)
    assert len(desk.failures) == 20
    assert desk.failures[-1].startswith("RuntimeError: number 49 (test_desk.py:")


def test_who_is_connected_is_asked_of_the_gateway_if_there_is_one(pipeline, agents, desk):
    class Gateway:
        def clients(self):
            return [{"label": "one"}]

    assert desk.connected() == []
    assert Desk(pipeline, agents, None, Gateway).connected() == [{"label": "one"}]


def test_a_program_asks_as_the_process_it_is(desk):
    asked = desk.asked_by(Peer(7, 0), "ci")
    assert (asked.peer.pid, asked.signed_in, asked.channel) == (7, False, "api")
    assert asked.actor == "root (token ci)"
    assert desk.asked.signed_in
