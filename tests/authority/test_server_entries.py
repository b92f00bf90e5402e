"""What entries say of secrets: no value is ever shown, and everybody who refers to one is known."""

import json

import pytest

from checkrein.settings.secrets import set_secret
from checkrein.store import records
from standing_gateway import VALUE, through


@pytest.fixture
def do(asked, gateway):
    return through(asked, gateway)


def everything_recorded(pipeline):
    return "".join(str(row) for row in records.after(pipeline.store, 0))


@pytest.mark.invariant("the record has a secret's name and never its value")
def test_the_record_has_a_secrets_name_and_never_its_value(do, pipeline):
    do("upstream.set_secret", name="one", value=VALUE)
    do("upstream.add", name="a", entry={"command": "x", "env": {"A": VALUE}}, secrets={"a.K": VALUE})
    do("upstream.add", name="b", entry={"command": "x", "args": ["--api-key", "hunter2hunter2"]})
    do("upstream.add", name="c", entry={"url": "https://x.test/mcp", "headers": {"X": "plain-words"}})
    signing = {"clientId": "mine", "clientSecret": "plain-client-secret"}
    do("upstream.add", name="d", entry={"url": "https://x.test/mcp", "oauth": signing})
    do("upstream.remove_secret", name="one")
    text = (
        everything_recorded(pipeline) + json.dumps(do("upstream.list")) + json.dumps(do("upstream.secrets"))
    )
    for secret in (VALUE, "hunter2", "plain-words", "plain-client-secret"):
        assert secret not in text


def test_a_clients_secret_is_one_of_its_own(do):
    signing = {"clientId": "mine", "clientSecret": "${keyring:mail.clientSecret}"}
    entry = {"url": "https://x.test/mcp", "oauth": signing}
    made = do("upstream.add", name="mail", entry=entry, secrets={"mail.clientSecret": VALUE})
    assert made["oauth"] == signing
    (kept,) = do("upstream.secrets")
    assert (kept["name"], kept["used_by"]) == ("mail.clientSecret", ["mail"])
    assert do("upstream.remove", name="mail")["secrets"] == ["mail.clientSecret"]


def test_secrets_are_listed_with_who_needs_them(do):
    set_secret("kept", VALUE)
    do("upstream.add", name="a", entry={"command": "x", "env": {"A": "${keyring:missing}"}})
    assert do("upstream.secrets") == [
        {"name": "kept", "place": "file", "used_by": []},
        {"name": "missing", "place": "", "used_by": ["a"]},
    ]
    assert do("upstream.set_secret", name="missing", value=VALUE)["used_by"] == ["a"]
    assert do("upstream.remove_secret", name="kept") == {"name": "kept", "used_by": []}
