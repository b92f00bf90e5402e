"""Which process may use the console's port: a person's own, on every address there is."""

import http.client
import os
import re
import socket
import struct
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from starlette.routing import Mount

from checkrein.console.app import routes
from checkrein.ledger.entries import body_of_row
from checkrein.peers import Peer
from checkrein.store import records
from patience import PATIENCE

from .conftest import Visitor

CHECKED = pytest.mark.invariant(
    "a process that is unknown, another user's or run by a gated agent is served nothing"
)
KEPT = pytest.mark.invariant(
    "the process found for a connection counts for that connection only, while it lives"
)
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="ROOT ONLY: nobody else can be another user")


def addresses(table, before=""):
    """Every method and address of the application, each name in it filled in."""
    for each in table:
        if isinstance(each, Mount) and each.routes:
            yield from addresses(each.routes, before + each.path)
        elif isinstance(each, Mount):
            yield "GET", f"{before}{each.path}/console.js"
        else:
            yield from ((method, before + each.path) for method in sorted(each.methods))


def refusals(pipeline):
    found = [body_of_row(row) for row in records.after(pipeline.store, 0, ("request_refused",))]
    return [each["data"]["reason"] for each in found]


@pytest.fixture
def line(console):
    """One connection that is kept."""
    made = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
    yield made
    made.close()


def status(line, path="/", **headers):
    line.request("GET", path, headers=headers)
    answer = line.getresponse()
    answer.read()
    return answer.status


@CHECKED
def test_what_an_agent_runs_is_refused_at_every_address(visitor, console, pipeline, met):
    link = urlsplit(console.link()).path
    met()
    found = list(addresses(routes()))
    assert len(found) > 100
    found += [("GET", "/at/{place}/nothing"), ("GET", link)]
    for method, path in found:
        place = path.replace("/at/{place}", visitor.place)
        at = re.sub(r"\{[\w:]+\}", "x", place)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Csrf": visitor.csrf}
        answer = visitor.request(method, at, f"csrf={visitor.csrf}" if method == "POST" else None, headers)
        assert answer.status == 403, (method, at)
        assert "content-security-policy" in answer.headers
        if method != "HEAD":
            assert "claude-code session s9" in answer.text, (method, at)
    assert refusals(pipeline) == ["a request came, and it comes from inside the claude-code session s9"]


@CHECKED
def test_whose_process_is_not_found_is_told_what_to_do(stranger, visitor, finder):
    finder.answer = lambda *_: None
    for path in ("/", f"{visitor.place}/", "/static/console.js"):
        answer = stranger.request("GET", path)
        assert answer.status == 403
        assert "its process cannot be found" in answer.text
        assert "checkrein open" in answer.text
    assert visitor.get("/").status == 403


@CHECKED
def test_another_user_neither_reads_nor_uses_up_a_link(stranger, console, finder):
    link, own = console.link(), finder.answer
    finder.answer = lambda *_: Peer(os.getpid(), os.geteuid() + 1)
    answer = stranger.request("GET", urlsplit(link).path)
    assert answer.status == 403
    assert "another user" in answer.text
    assert "set-cookie" not in answer.headers
    finder.answer = own
    stranger.sign_in(link)


REDEEM = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
line = socket.socket()
line.connect(("127.0.0.1", int(sys.argv[1])))
head = f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: 127.0.0.1:{sys.argv[1]}\\r\\n"
line.sendall(f"{head}Connection: close\\r\\n\\r\\n".encode())
said = b""
while piece := line.recv(65536):
    said += piece
print(said.decode())
"""


@root_only
@CHECKED
def test_a_real_other_user_with_a_real_link_gets_nothing(stranger, console, pipeline):
    link = console.link()
    words = [sys.executable, "-c", REDEEM, str(console.port), urlsplit(link).path]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    assert said.startswith("HTTP/1.1 403")
    assert "set-cookie" not in said.lower()
    assert refusals(pipeline) == ["a request came, and it is another user's"]
    stranger.sign_in(link)


@pytest.mark.invariant("a process that cannot be checked is not served")
def test_a_check_that_fails_is_a_refusal(visitor, console, finder):
    def broken(*_):
        raise OSError("no table")

    finder.answer = broken
    answer = visitor.get("/")
    assert answer.status == 403
    assert "could not be checked" in answer.text
    assert "no table" not in answer.text
    assert "OSError: no table" in console.desk.failures[-1]


@KEPT
def test_a_connection_is_looked_up_once(line, finder):
    before = finder.asked
    assert [status(line) for _ in range(3)] == [401, 401, 401]
    assert finder.asked == before + 1


@KEPT
def test_the_next_connection_from_the_same_port_is_another_one(console, finder):
    def connect(port=0):
        made = socket.socket()
        made.settimeout(PATIENCE)
        # Gone at once when it is closed, so that its port can be taken again.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.connect(("127.0.0.1", console.port))
        return made

    def ask(made):
        made.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n\r\n".encode())
        return made.recv(65536).split()[1]

    first = connect()
    port = first.getsockname()[1]
    assert ask(first) == b"401"
    first.close()
    finder.answer = lambda *_: Peer(os.getpid(), os.geteuid() + 1)
    with connect(port) as second:
        assert ask(second) == b"403"


@KEPT
def test_a_connection_whose_process_ended_is_looked_up_again(line, finder):
    with subprocess.Popen(["sleep", "600"]) as child:
        finder.answer = lambda *_: Peer(child.pid, os.geteuid())
        assert status(line) == 401
        child.kill()
    # Its parent holds the connection still.
    finder.answer = lambda *_: Peer(os.getpid(), os.geteuid())
    assert status(line) == 401
    finder.answer = lambda *_: None
    assert status(line) == 401
    with subprocess.Popen(["sleep", "600"]) as child:
        finder.answer = lambda *_: Peer(child.pid, os.geteuid())
        other = http.client.HTTPConnection("127.0.0.1", line.port, timeout=PATIENCE)
        assert status(other) == 401
        child.kill()
    finder.answer = lambda *_: None
    assert status(other) == 403
    other.close()


@CHECKED
def test_who_is_an_agent_is_asked_again_on_an_open_connection(line, met):
    assert status(line) == 401
    met()
    assert status(line) == 403


def test_a_token_that_an_agent_shows_is_named_on_the_record(stranger, console, pipeline, met):
    token = console.desk.ask("token.add", name="ci")["token"]
    met()
    answer = stranger.request("GET", "/api/v1/sessions", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 403
    why = "it comes from inside the claude-code session s9"
    assert refusals(pipeline) == [f"a program showed the token ci, and {why}"]


@pytest.mark.invariant("a page without an origin may send the form that signs in and nothing else")
def test_a_file_may_send_the_form_that_signs_in_and_nothing_else(console, visitor):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    file = {"Origin": "null", "Sec-Fetch-Site": "cross-site"} | kind

    def sign_in(secret, **headers):
        return Visitor(console).request("POST", "/signin", f"secret={secret}", kind | headers)

    secrets = [console.link().rpartition("/")[2] for _ in range(3)]
    assert sign_in(secrets[0], Origin="http://evil.example").status == 403
    assert sign_in(secrets[0], Origin=f"http://127.0.0.1:{console.port}").status == 200
    answer = sign_in(secrets[1], **file)
    assert answer.status == 200
    assert answer.headers["set-cookie"].startswith("checkrein=")
    for wrong in (secrets[1], "", "x", "%00"):
        answer = sign_in(wrong, **file)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    link = f"/signin/{secrets[2]}"
    places = [("POST", f"{visitor.place}/health/verify"), ("GET", "/"), ("GET", link), ("POST", link)]
    for method, path in [*places, ("POST", "/signin/"), ("GET", "/signin"), ("POST", "/api/v1/sessions")]:
        answer = visitor.request(method, path, f"csrf={visitor.csrf}" if method == "POST" else None, file)
        assert answer.status == 403, (method, path)
        assert "Another site" in answer.text
    assert sign_in(secrets[2]).status == 200
