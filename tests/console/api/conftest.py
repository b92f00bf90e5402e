"""A console with a chat in memory, and a program that comes with a token."""

import http.client
import json

import pytest

from checkrein.authority import Asked, myself, perform
from checkrein.console.serving import Console
from patience import PATIENCE
from talker import Talker


class Said:
    """What came back."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]


class Program:
    """Asks as any program does."""

    def __init__(self, console, token):
        self.console, self.token = console, token

    def __call__(self, method, path, body=None, raw=None, **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.console.port, timeout=PATIENCE)
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if method in ("POST", "PATCH"):
            sent["Content-Type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            content = raw if raw is not None else None if body is None else json.dumps(body)
            line.request(method, f"/api/v1{path}", content, sent)
            return Said(line.getresponse())
        finally:
            line.close()

    def listen(self, path="/sessions/s1/events", **headers):
        """An open line; close its connection when done."""
        line = http.client.HTTPConnection("127.0.0.1", self.console.port, timeout=PATIENCE)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request("GET", f"/api/v1{path}", None, {"Authorization": f"Bearer {self.token}"} | sent)
        return line, line.getresponse()


@pytest.fixture
def talker():
    return Talker()


@pytest.fixture
def console(pipeline, agents, talker, serve, finder):
    return serve(Console(pipeline, agents, chat=lambda: talker, find_peer=finder))


@pytest.fixture
def person(pipeline, agents):
    """Performs a verb as a person at a terminal."""
    asked = Asked(pipeline, agents, myself())
    return lambda name, /, **params: perform(asked, name, params)


@pytest.fixture
def make(console, person):
    """A program with a token that may do what is said."""

    def make(name="ci", **may):
        return Program(console, person("token.add", name=name, **may)["token"])

    return make


@pytest.fixture
def program(make):
    return make(approve=True)
