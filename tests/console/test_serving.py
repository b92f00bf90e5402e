import http.client
import socket

import pytest

from checkrein.console.serving import Console
from patience import PATIENCE, Awake


def test_it_listens_on_loopback_and_stops(pipeline, agents):
    console = Console(pipeline, agents)
    port = console.start(0)
    assert port == console.port > 0
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    line.request("GET", "/")
    assert line.getresponse().status == 401
    line.close()
    console.stop()
    console.stop()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_another_port_is_taken_when_it_is_in_use(pipeline, agents):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        console = Console(pipeline, agents)
        port = console.start(taken.getsockname()[1])
        assert port != taken.getsockname()[1]
        console.stop()


def test_a_link_is_an_address_here(console):
    first, second = console.link(), console.link()
    assert first != second
    assert first.startswith(f"http://127.0.0.1:{console.port}/signin/")


def test_it_stops_soon_also_while_pages_listen(pipeline, agents, visitor):
    line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
    line.request("GET", f"{visitor.place}/feed", headers={"Cookie": visitor.cookie})
    response = line.getresponse()
    assert response.readline()
    with Awake.during() as took:
        visitor.console.stop()
    assert took.seconds < 2.5
    line.close()
    assert pipeline.broker.reachable is False


def test_it_says_where_it_is(console):
    assert console.address == f"http://127.0.0.1:{console.port}"
