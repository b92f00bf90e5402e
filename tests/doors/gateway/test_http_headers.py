import pytest

from checkrein.doors.gateway.http_headers import (
    MOST_HEADERS,
    Head,
    accepts,
    foreign,
    hosts,
    is_json,
    length,
    path_of,
    read,
)

NAMES = hosts(7330)


def test_headers_are_read_by_name():
    assert read([(b"host", b"a"), (b"accept", b"b")]) == ({b"host": b"a", b"accept": b"b"}, None)


@pytest.mark.parametrize(
    "name", [b"host", b"authorization", b"mcp-name", b"mcp-param-x", b"content-type", b"x"]
)
@pytest.mark.invariant("a header that decides anything comes once")
def test_what_comes_twice_is_refused(name):
    _, refusal = read([(name, b"a"), (b"accept", b"b"), (name, b"a")])
    assert refusal == (400, f"The header {name.decode()} comes twice.")


def test_lists_are_joined():
    found, refusal = read([(b"accept", b"a"), (b"host", b"h"), (b"accept", b"b")])
    assert (found[b"accept"], refusal) == (b"a, b", None)


def test_there_is_an_end_to_headers():
    lines = [(b"x-%d" % number, b"") for number in range(MOST_HEADERS + 1)]
    assert read(lines)[1][0] == 431
    assert read(lines[1:])[1] is None


@pytest.mark.parametrize("host", [b"127.0.0.1:7330", b"localhost:7330", b"LOCALHOST:7330", b"[::1]:7330"])
def test_our_own_names(host):
    assert foreign({b"host": host}, NAMES) is None
    assert foreign({b"host": host, b"origin": b"http://" + host}, NAMES) is None


@pytest.mark.parametrize(
    "host",
    [b"", b"127.0.0.1", b"localhost", b"evil:7330", b"127.0.0.1:7331", b"localhost:7330.evil", b"0:7330"],
)
@pytest.mark.invariant("a page reached under another name (DNS rebinding) or from another site gets nothing")
def test_other_names(host):
    assert foreign({b"host": host}, NAMES)[0] == 403
    assert foreign({}, NAMES)[0] == 403


@pytest.mark.parametrize(
    "origin",
    [
        b"",
        b"null",
        b"localhost:7330",
        b"https://localhost:7330",
        b"http://evil",
        b"file://",
        b"http://localhost:7330/",
    ],
)
def test_other_origins(origin):
    assert foreign({b"host": b"localhost:7330", b"origin": origin}, NAMES)[0] == 403


@pytest.mark.parametrize(
    ("given", "json", "events"),
    [
        (b"application/json, text/event-stream", True, True),
        (b"text/event-stream;q=1,APPLICATION/JSON ; q=0.5", True, True),
        (b"*/*", True, True),
        (b"application/*", True, False),
        (b"text/*", False, True),
        (b"text/html", False, False),
        (b"", False, False),
        (b"application/jsonp", False, False),
    ],
)
def test_what_a_client_takes(given, json, events):
    for _ in range(2):
        assert accepts({b"accept": given}) == (json, events)


def test_nobody_takes_anything_by_default():
    assert accepts({}) == (False, False)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (b"application/json", True),
        (b"Application/JSON; charset=utf-8", True),
        (b"application/json-patch+json", False),
        (b"text/json", False),
        (b"", False),
    ],
)
def test_what_a_body_is(given, right):
    assert is_json({b"content-type": given}) is right


@pytest.mark.parametrize(
    ("given", "found"), [(b"17", 17), (b"0", 0), (b"-1", -1), (b"x", -1), (b"9" * 40, -1), (b"", -1)]
)
def test_announced_lengths(given, found):
    assert length(given) == found


@pytest.mark.invariant("nothing here depends on the length of the body, in which alone they may differ")
def test_a_head_is_looked_at_once_and_says_nothing_of_the_length():
    pairs = [(b"content-type", b"application/json"), (b"accept", b"*/*"), (b"content-length", b"3")]
    head = Head("POST", "/mcp", pairs)
    found, refusal = head.found()
    assert (found, refusal) == ({b"content-type": b"application/json", b"accept": b"*/*"}, None)
    assert head.kinds() == (True, (True, True))
    pairs.clear()
    assert head.found()[0] is found and head.kinds() == (True, (True, True))


def test_a_head_that_is_refused_stays_refused():
    head = Head("POST", "/mcp", [(b"x", b"1"), (b"x", b"2")])
    assert head.found()[1] == head.found()[1] == (400, "The header x comes twice.")


@pytest.mark.invariant("a target that names a host names the one the request says it is for")
def test_the_path_of_a_target():
    host = [(b"host", b"x")]
    assert [path_of(url, []) for url in (b"/mcp", b"/mcp?a=b", b"/a%20b")] == ["/mcp", "/mcp", "/a b"]
    assert path_of(b"http://x/mcp", host) == "/mcp"
    for headers in ([], [(b"host", b"y")], host * 2):
        with pytest.raises(ValueError, match="another host"):
            path_of(b"http://x/mcp", headers)
