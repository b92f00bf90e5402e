import http.client
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ground import Clock

from checkrein.console.serving import Console
from checkrein.console.signin import LINK_SECONDS, SignIn
from checkrein.runtime import console_socket_path
from console.conftest import Visitor
from patience import PATIENCE, until


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


def sent(path):
    """What the form in a file that signs in says: where it goes, and its secret."""
    text = path.read_text()
    return re.search(r'action="([^"]+)"', text)[1], re.search(r'name="secret" value="([^"]+)"', text)[1]


@pytest.mark.invariant("the secret that signs a browser in stands in a file only its owner can read")
def test_a_file_signs_in_once_and_is_gone_then(console):
    path = Path(console.sign_in_file())
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    address, secret = sent(path)
    assert address == f"{console.address}/signin"
    assert secret not in str(path)
    browser, form = Visitor(console), {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
    assert browser.request("POST", "/signin", "secret=wrong", form).status == 403
    assert path.exists()
    assert browser.request("POST", "/signin", f"secret={secret}", form).status == 200
    assert not path.exists()
    assert browser.request("POST", "/signin", f"secret={secret}", form).status == 403


def test_a_file_goes_when_its_time_is_over(console):
    clock = Clock()
    console.desk.signin = SignIn(clock)
    path = Path(console.sign_in_file())
    assert path.exists()
    clock.now += LINK_SECONDS
    until(lambda: not path.exists())


def test_files_go_with_their_server_and_those_of_one_that_was_killed_with_the_next(own_console):
    path = Path(own_console.sign_in_file())
    own_console.stop()
    assert not path.exists()
    path.write_text("left behind")
    own_console.start(0)
    assert not path.exists()


class OnSocket(http.client.HTTPConnection):
    """Comes by the console's socket, as a connection that SSH forwards."""

    def __init__(self, console):
        super().__init__("127.0.0.1", console.port, timeout=PATIENCE)
        self.path = console.socket

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def test_what_ssh_forwards_comes_by_a_socket_and_is_checked_as_well(own_console, met):
    assert Path(own_console.socket).stat().st_mode & 0o777 == 0o600
    line = OnSocket(own_console)
    try:
        for marks, status in ((False, 200), (True, 403)):
            link = own_console.link()
            if marks:
                met()
            line.request("GET", urlsplit(link).path)
            answer = line.getresponse()
            answer.read()
            assert answer.status == status
    finally:
        line.close()
    own_console.stop()
    assert not Path(own_console.socket).exists()


def test_where_a_socket_cannot_be_made_the_port_is_there_all_the_same(pipeline, agents):
    console_socket_path().mkdir(parents=True)
    console = Console(pipeline, agents)
    console.start(0)
    assert console.socket == ""
    assert Visitor(console).request("GET", "/").status == 401
    console.stop()


def test_it_says_where_it_is(console):
    assert console.address == f"http://127.0.0.1:{console.port}"
