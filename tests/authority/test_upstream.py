"""Verbs about MCP servers: what they change, what they record, what they never tell."""

import pytest

from checkrein.authority import Asked, perform
from checkrein.errors import CheckreinError, InputError, NotFoundError, PersonOnlyError
from checkrein.settings.secrets import list_secrets
from checkrein.settings.servers import read_servers, servers_file
from standing_gateway import VALUE, through


@pytest.fixture
def do(asked, gateway):
    return through(asked, gateway)


def test_a_name_is_taken_once(do, files):
    with pytest.raises(InputError, match="already"):
        do("upstream.add", name="files", entry={"command": "other"}, secrets={"files.X": VALUE})
    assert read_servers().servers["files"].command == "serve-files"
    assert list_secrets() == {}


def test_importing_is_all_or_nothing(do, files):
    good, bad = {"name": "new", "entry": {"command": "x"}}, {"name": "bad", "entry": {}}
    with pytest.raises(CheckreinError):
        do("upstream.import", servers=[good, bad])
    with pytest.raises(InputError):
        do("upstream.import", servers=[good, {"name": "files", "entry": {"command": "y"}}])
    assert list(read_servers().servers) == ["files"]
    do("upstream.import", servers=[good, {"name": "files", "entry": {"command": "y"}}], replace=True)
    assert {name: spec.command for name, spec in read_servers().servers.items()} == {"new": "x", "files": "y"}
    with pytest.raises(InputError, match="nothing"):
        do("upstream.import", servers=[])


def test_a_broken_file_is_listed_with_its_fault(do):
    servers_file().parent.mkdir(parents=True)
    servers_file().write_text("{ broken")
    found = do("upstream.list")
    assert "line 1" in found["fault"]
    assert found["servers"] == []


def test_removing_takes_its_own_secrets_along(do, files):
    entry = {"command": "x", "env": {"A": "${keyring:git.A}", "B": "${keyring:shared}"}}
    do("upstream.add", name="git", entry=entry, secrets={"git.A": VALUE, "shared": VALUE})
    assert do("upstream.remove", name="git")["secrets"] == ["git.A"]
    assert list_secrets() == {"shared": "file"}
    assert list(read_servers().servers) == ["files"]


def test_a_secret_another_server_uses_stays(do):
    entry = {"command": "x", "env": {"A": "${keyring:git.A}"}}
    do("upstream.add", name="git", entry=entry, secrets={"git.A": VALUE})
    do("upstream.add", name="two", entry=entry)
    do("upstream.remove", name="git")
    assert list_secrets() == {"git.A": "file"}


def test_stopping_lasts_until_somebody_starts_it(do, files, gateway, recorded):
    assert do("upstream.stop", name="files")["state"] == "ready"
    assert not read_servers().servers["files"].enabled
    do("upstream.start", name="files")
    do("upstream.start", name="files")
    assert read_servers().servers["files"].enabled
    assert [each["change"] for each in recorded("servers_changed")] == ["added", "stopped", "started"]
    assert [each for each in gateway.done if each[0] != "reload"] == [
        ("stop", "files"),
        ("start", "files"),
        ("start", "files"),
    ]


@pytest.mark.parametrize("name", ["remove", "start", "stop", "restart", "logs", "test", "browse", "review"])
def test_a_server_nobody_has_is_not_found(do, files, name):
    with pytest.raises(NotFoundError, match="files"):
        do(f"upstream.{name}", name="ghost")


def test_logs_are_masked_and_bounded(do, files):
    lines = do("upstream.logs", name="files", count=10**9)
    assert len(lines) == 1000
    assert VALUE not in lines[0]


def test_testing_restarting_and_reading_again(do, files, gateway):
    assert do("upstream.test", name="files")["info"] == {"name": "serve-files"}
    assert do("upstream.restart", name="files")["name"] == "files"
    assert do("upstream.reload") == {"servers": 1}
    assert ("restart", "files") in gateway.done


@pytest.mark.invariant("nothing is accepted but what was named by its hash")
def test_accepting_names_exact_hashes(do, files, gateway, asked):
    pick = {"kind": "tool", "name": "t", "hash": "h"}
    assert do("upstream.accept", name="files", picks=[pick])[0]["name"] == "t"
    do("upstream.refuse", name="files", picks=[pick])
    assert gateway.done == [
        ("accept", "files", [pick], asked.actor),
        ("refuse", "files", [pick], asked.actor),
    ]
    for picks in ([], [{**pick, "hash": ""}], [{"kind": "tool", "name": "t"}]):
        with pytest.raises(InputError):
            do("upstream.accept", name="files", picks=picks)
    assert len(gateway.done) == 2


def test_a_secret_that_is_no_text_is_refused_without_being_quoted(do):
    with pytest.raises(InputError) as found:
        do("upstream.set_secret", name="x", value={"deep": VALUE})
    assert VALUE not in str(found.value)


class NobodyIsAPerson:
    def not_a_person(self, _peer):
        return "an agent asks"

    def refused(self, *_):
        pass


@pytest.mark.invariant(
    "no agent learns the address of a sign-in page, which would let it sign in as somebody else"
)
@pytest.mark.parametrize(
    "name",
    (
        "add import remove start stop restart reload logs test accept refuse set_secret remove_secret"
        " sign_in sign_in_state sign_out"
    ).split(),
)
def test_what_changes_something_is_a_persons(asked, pipeline, name):
    with pytest.raises(PersonOnlyError):
        perform(Asked(pipeline, NobodyIsAPerson(), asked.peer), f"upstream.{name}", {})


def test_signing_in_and_out_is_passed_on_and_signing_out_is_recorded(do, gateway, files, recorded):
    assert do("upstream.sign_in", name="files")["url"] == "https://accounts.example/"
    assert do("upstream.sign_in_state", name="files")["state"] == "waiting"
    assert do("upstream.sign_out", name="files") == {"forgot": True}
    assert [each[:2] for each in gateway.done] == [("sign_in", "files"), ("sign_out", "files")]
    assert gateway.done[0][2]
    data = recorded("servers_changed")[-1]
    assert (data["change"], data["server"]) == ("signed_out", "files") and data["actor"]
    for name in ("upstream.sign_in", "upstream.sign_in_state", "upstream.sign_out"):
        with pytest.raises(NotFoundError):
            do(name, name="nobody")
