"""Addresses: who a call talks to, and what cannot be read counts as outside."""

from __future__ import annotations

import pytest

from checkrein.classify.hosts import host_of, scope_of
from checkrein.classify.words import HOLE, LITERAL, OPEN, Word

KNOWN = frozenset(("api.corp.example", "*.dev.example"))


def scope(text):
    return scope_of(Word(text, OPEN if HOLE in text else LITERAL), KNOWN)[0]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://x.example/a?b#c", "x.example"),
        ("HTTPS://X.Example", "x.example"),
        ("https://user:pass@x.example:8443/", "x.example"),
        ("git@x.example:a/b.git", "x.example"),
        ("x.example:80", "x.example"),
        ("x.example.", "x.example"),
        ("http://[::1]:80/", "[::1]"),
        ("", ""),
    ],
)
def test_the_host_of_an_address(text, host):
    assert host_of(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "localhost",
        "http://localhost:3000/x",
        "127.0.0.1:80",
        "http://127.9.9.9",
        "http://[::1]/",
        "http://app.localhost",
        "0.0.0.0:80",
    ],
)
def test_this_machine_is_loopback(text):
    assert scope(text) == "loopback"


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://127.0.0.1.evil.example",
        "http://evil.example/localhost",
        "http://evil.example?localhost",
        "http://evil.example#@localhost",
        "http://evil.example\\@localhost",
        "http://10.0.0.5",
        "http://169.254.169.254/latest",
        "http://2130706433",
        "http://api.corp.example.evil.example",
        "http://dev.example.evil",
        "http://xdev.example",
    ],
)
def test_a_look_alike_of_a_trusted_host_is_outside(text):
    assert scope(text) == "outside"


def test_hosts_a_user_vouches_for_are_known():
    assert scope("https://api.corp.example/x") == "known"
    assert scope("https://a.b.dev.example") == "known"
    assert scope("https://corp.example") == "outside"


@pytest.mark.invariant("a host we cannot read is an outside host")
@pytest.mark.parametrize(
    "text",
    [
        "",
        HOLE,
        f"http://{HOLE}",
        f"http://localhost{HOLE}/",
        f"http://{HOLE}@localhost/",
        f"http://localhost:1{HOLE}x",
        f"{HOLE}://localhost",
    ],
)
def test_a_host_we_cannot_read_is_an_outside_host(text):
    assert scope(text) == "outside"


def test_an_unknown_port_or_path_does_not_change_the_host():
    assert scope(f"http://localhost:{HOLE}/health") == "loopback"
    assert scope(f"http://localhost/{HOLE}") == "loopback"
    assert scope(f"https://api.corp.example/{HOLE}") == "known"
