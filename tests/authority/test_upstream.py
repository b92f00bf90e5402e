"""Verbs about MCP servers: what they change, what they record, what they never tell."""

import json

import msgspec
import pytest

from checkrein.authority import Asked, perform
from checkrein.errors import CheckreinError, InputError, NotFoundError, PersonOnlyError
from checkrein.settings.secrets import list_secrets, set_secret
from checkrein.settings.servers import read_servers, servers_file
from checkrein.store import records

VALUE = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


class Standing:
    """A gateway as the verbs see it."""

    def __init__(self):
        self.done, self.tools = [], []

    def servers(self):
        return [{"name": name, "state": "ready", "connections": 1} for name in read_servers().servers]

    def start(self, name):
        self.done.append(("start", name))

    def stop(self, name):
        self.done.append(("stop", name))

    def restart(self, name):
        self.done.append(("restart", name))

    def sign_in(self, name, actor):
        self.done.append(("sign_in", name, actor))
        return {"state": "waiting", "url": "https://accounts.example/"}

    def sign_in_state(self, name):
        return {"state": "waiting"}

    def sign_out(self, name):
        self.done.append(("sign_out", name))
        return {"forgot": True}

    def logs(self, name, count):
        return [f"token={VALUE}"] * count

    def test(self, spec):
        return {"info": {"name": spec.command}, "tools": []}

    def browse(self, name):
        return self.tools

    def review(self, name):
        return [{"server": name, "kind": "tool", "name": "t", "hash": "h", "state": "new"}]

    def accept(self, name, picks, actor):
        self.done.append(("accept", name, picks, actor))

    def refuse(self, name, picks, actor):
        self.done.append(("refuse", name, picks, actor))

    def reload(self):
        self.done.append(("reload",))
        return {"servers": len(read_servers().servers)}

    def clients(self):
        return []

    def revoke(self, id):
        self.done.append(("revoke", id))


@pytest.fixture
def gateway():
    return Standing()


@pytest.fixture
def do(asked, gateway):
    behind = msgspec.structs.replace(asked, gateway=lambda: gateway)
    return lambda name, /, **params: perform(behind, name, params)


@pytest.fixture
def files(do, gateway):
    do("upstream.add", name="files", entry={"command": "serve-files", "args": ["/tmp"]})
    gateway.done.clear()


def everything_recorded(pipeline):
    return "".join(str(row) for row in records.after(pipeline.store, 0))


def test_adding_writes_the_file_records_it_and_tells_the_gateway(do, gateway, recorded):
    made = do(
        "upstream.add",
        name="git",
        entry={"command": "serve-git", "env": {"TOKEN": "${keyring:git.TOKEN}", "PLAIN": "visible"}},
        secrets={"git.TOKEN": VALUE},
    )
    assert made["env"] == {"TOKEN": "${keyring:git.TOKEN}", "PLAIN": "(set)"}
    assert read_servers().servers["git"].env["PLAIN"] == "visible"
    assert gateway.done == [("reload",)]
    (data,) = recorded("servers_changed")
    assert (data["change"], data["secrets"], data["servers"][0]["name"]) == ("added", ["git.TOKEN"], "git")
    assert data["actor"]


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


def test_a_change_that_cannot_be_written_is_not_recorded(do, recorded):
    servers_file().parent.mkdir(parents=True)
    servers_file().write_text("{ broken")
    with pytest.raises(CheckreinError, match="line 1"):
        do("upstream.add", name="a", entry={"command": "x"})
    assert recorded("servers_changed") == []
    assert servers_file().read_text() == "{ broken"


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


def test_a_clients_secret_is_one_of_its_own(do):
    signing = {"clientId": "mine", "clientSecret": "${keyring:mail.clientSecret}"}
    entry = {"url": "https://x.test/mcp", "oauth": signing}
    made = do("upstream.add", name="mail", entry=entry, secrets={"mail.clientSecret": VALUE})
    assert made["oauth"] == signing
    (kept,) = do("upstream.secrets")
    assert (kept["name"], kept["used_by"]) == ("mail.clientSecret", ["mail"])
    assert do("upstream.remove", name="mail")["secrets"] == ["mail.clientSecret"]


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


def test_browsing_says_what_policy_says_today(do, files, gateway):
    gateway.tools = [
        {"server": "files", "tool": "read_file", "annotations": {"readOnlyHint": True, "pinned": True}},
        {"server": "files", "tool": "x", "verdict": "deny"},
    ]
    first, second = do("upstream.browse", name="files")
    assert (first["verdict"], second["verdict"]) == ("ask", "deny")
    assert first["reasons"]
    do("rule.add", rule={"action": "allow", "server": "files", "tool": "read_file", "reason": "harmless"})
    first, _ = do("upstream.browse")
    assert first["verdict"] == "allow"
    assert "harmless" in " ".join(first["reasons"])


def test_only_a_persons_word_makes_hints_count(do, files, gateway):
    hints = {"readOnlyHint": True, "pinned": True}
    gateway.tools = [{"server": "files", "tool": "get_thing", "annotations": hints}]
    (doubted,) = do("upstream.browse")
    entry = {"command": "serve-files", "trusted": True}
    do("upstream.import", servers=[{"name": "files", "entry": entry}], replace=True)
    (vouched,) = do("upstream.browse")
    assert (doubted["risk"], vouched["risk"]) == ("medium", "low")


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


def test_secrets_are_listed_with_who_needs_them(do):
    set_secret("kept", VALUE)
    do("upstream.add", name="a", entry={"command": "x", "env": {"A": "${keyring:missing}"}})
    assert do("upstream.secrets") == [
        {"name": "kept", "place": "file", "used_by": []},
        {"name": "missing", "place": "", "used_by": ["a"]},
    ]
    assert do("upstream.set_secret", name="missing", value=VALUE)["used_by"] == ["a"]
    assert do("upstream.remove_secret", name="kept") == {"name": "kept", "used_by": []}


def test_a_secret_that_is_no_text_is_refused_without_being_quoted(do):
    with pytest.raises(InputError) as found:
        do("upstream.set_secret", name="x", value={"deep": VALUE})
    assert VALUE not in str(found.value)


def test_without_a_server_the_file_can_be_seen_and_nothing_runs(asked):
    perform(asked, "upstream.add", {"name": "a", "entry": {"command": "x"}})
    assert [each["state"] for each in perform(asked, "upstream.list", {})["servers"]] == ["stopped"]
    assert perform(asked, "upstream.browse", {}) == perform(asked, "upstream.review", {}) == []
    for name in ("start", "restart", "logs", "test"):
        with pytest.raises(InputError, match="running server"):
            perform(asked, f"upstream.{name}", {"name": "a"})


@pytest.mark.parametrize(
    "name",
    (
        "add import remove start stop restart reload logs test accept refuse set_secret remove_secret"
        " sign_in sign_in_state sign_out"
    ).split(),
)
def test_what_changes_something_is_a_persons(asked, pipeline, name, monkeypatch):
    monkeypatch.setattr(type(asked.agents), "not_a_person", lambda *_: "an agent asks")
    with pytest.raises(PersonOnlyError):
        perform(Asked(pipeline, asked.agents, asked.peer), f"upstream.{name}", {})


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
