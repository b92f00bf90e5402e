import http.client
import socket

import pytest

from checkrein.console.serving import Console
from console.conftest import Visitor
from patience import PATIENCE


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
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


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


def test_it_stops_also_while_pages_listen(pipeline, own_console):
    visitor = Visitor(own_console).sign_in()
    line = http.client.HTTPConnection("127.0.0.1", own_console.port, timeout=PATIENCE)
    line.request("GET", f"{visitor.place}/feed", headers={"Cookie": visitor.cookie})
    response = line.getresponse()
    assert response.readline()
    own_console.stop()
    while response.readline():
        pass
    line.close()
    assert pipeline.broker.reachable is False
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", own_console.port), timeout=PATIENCE)


def test_it_says_where_it_is(console):
    assert console.address == f"http://127.0.0.1:{console.port}"
