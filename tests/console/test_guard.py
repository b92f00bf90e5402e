import http.client
import socket

import pytest

from checkrein.console.guard import LARGEST_BODY, LARGEST_UPLOAD, POLICY, _largest
from patience import PATIENCE


@pytest.mark.parametrize("path", ["/", "/signin/x", "/static/console.css", "/nothing/here"])
def test_every_answer_is_dressed(stranger, path):
    headers = stranger.request("GET", path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")
    assert "server" not in headers


def test_pages_are_never_kept_by_the_browser(visitor):
    assert visitor.get("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]", ""])
def test_another_name_for_this_machine_gets_nothing(visitor, host):
    answer = visitor.get("/", Host=host)
    assert answer.status in (400, 421)
    assert "Inbox" not in answer.text


def test_localhost_is_us_too(visitor):
    assert visitor.get("/", Host=f"localhost:{visitor.console.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_origin_is_refused(visitor, origin, ask):
    waiter = ask()
    answer = visitor.post(f"/inbox/answer/{waiter.entry}", {"answer": "approved"}, Origin=origin)
    assert answer.status == 403
    assert visitor.get("/", Origin=origin).status == 403


def test_our_own_origin_is_fine(visitor):
    assert visitor.get("/", Origin=f"http://127.0.0.1:{visitor.console.port}").status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_nothing_changes_for_a_page_on_another_port(visitor, site):
    assert visitor.post("/health/verify", sec_fetch_site=site).status == 403
    assert visitor.get("/", sec_fetch_site=site).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"])
def test_other_methods_are_refused(visitor, method):
    assert visitor.request(method, f"{visitor.place}/").status == 405


def test_a_body_that_is_too_large_is_refused_by_its_length(visitor):
    line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
    line.putrequest("POST", f"{visitor.place}/health/verify")
    line.putheader("Content-Length", str(LARGEST_BODY + 1))
    line.endheaders()
    assert line.getresponse().status == 413
    line.close()


def test_a_body_without_a_length_is_counted(visitor):
    form = "application/x-www-form-urlencoded"
    with socket.create_connection(("127.0.0.1", visitor.console.port), timeout=PATIENCE) as line:
        head = (
            f"POST {visitor.place}/health/verify HTTP/1.1\r\nHost: 127.0.0.1:{visitor.console.port}\r\n"
            f"Cookie: {visitor.cookie}\r\nContent-Type: {form}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        line.sendall(head.encode())
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(LARGEST_BODY // 0x10000 + 2):
                line.sendall(chunk)
        except OSError:
            pass
        assert b" 413 " in line.recv(4096).splitlines()[0]


def test_a_length_that_is_none_is_refused(visitor):
    answer = visitor.request("POST", f"{visitor.place}/health/verify", headers={"Content-Length": "-1"})
    assert answer.status == 400


@pytest.mark.parametrize(
    ("path", "largest"),
    [
        ("/api/v1/sessions/a/messages", LARGEST_UPLOAD),
        ("/at/x/chat/api/sessions/import", LARGEST_UPLOAD),
        ("/at/x/chat/a/send", LARGEST_UPLOAD),
        ("/at/x/chats", LARGEST_BODY),
        ("/api/v1/sessions", LARGEST_BODY),
        ("/at/x/y/chat/api/sessions/import", LARGEST_BODY),
        ("/other/messages", LARGEST_BODY),
    ],
)
def test_more_is_taken_only_where_files_are_sent(path, largest):
    assert _largest(path) == largest


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_only_the_api_knows_more_methods(visitor, method):
    assert visitor.request(method, f"{visitor.place}/calls").status == 405
    assert visitor.request(method, f"{visitor.place}/chat/api/nothing").status == 403
