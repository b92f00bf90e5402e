"""The servers file: what it takes, what it refuses and how, and that it is never half written."""

import json
import stat

import msgspec
import pytest

from checkrein.errors import ConfigError
from checkrein.settings.secrets import set_secret
from checkrein.settings.servers import (
    ServerSpec,
    check_name,
    entry,
    read_servers,
    resolve,
    server_spec,
    servers_file,
    stamp,
    write_servers,
)


@pytest.fixture
def write():
    def put(content):
        path = servers_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        path.chmod(0o600)
        return path

    return put


def fault(write, content):
    write(content)
    found = read_servers()
    assert found.servers == {}
    assert found.fault
    return found.fault


def test_no_file_is_no_server_and_no_fault():
    found = read_servers()
    assert (found.servers, found.fault) == ({}, "")


def test_a_program_and_an_address(write):
    write(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${env:B}"}, "timeout": 5},
                "far": {"type": "streamable-http", "url": "https://x.test/mcp", "headers": {"X-Key": "${K}"}},
            }
        }
    )
    found = read_servers()
    assert found.fault == ""
    assert found.servers["files"] == ServerSpec(
        name="files", command="npx", args=("-y", "x"), env={"A": "${env:B}"}, timeout=5
    )
    assert found.servers["far"].transport == "http"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("{\n\n  oops", "line 3"),
        ("[]", "is not an object"),
        ('{"mcpServers": []}', "must be an object"),
        ('{"mcpServer": {}}', "Did you mean `mcpServers`?"),
        ('{"servers": {}}', "Did you mean `mcpServers`?"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "names 'a' twice"),
        ('{"mcpServers": {"a": {"command": "x", "timeout": NaN}}}', "NaN"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_file_is_a_fault_that_says_where(write, body, part):
    assert part in fault(write, body)


def test_a_fault_in_an_entry_has_its_line(write):
    body = '{"mcpServers": {\n "a": {"command": "x"},\n "b": {\n  "command": "y",\n  "timeout": "soon"}}}'
    text = fault(write, body)
    assert "line 5" in text
    assert "`b.timeout`" in text
    assert "soon" not in text


@pytest.mark.invariant("what lets us in somewhere never travels in the clear")
@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ("x", "must be an object"),
        ({}, "needs a `command` or a `url`"),
        ({"command": "x", "url": "https://a.test"}, "and not both"),
        ({"command": "x", "agrs": []}, "Did you mean `args`?"),
        ({"command": "x", "disabled": True}, "Did you mean `enabled`?"),
        ({"command": "x", "share": "none"}, "'auto' or 'shared' or 'client'"),
        ({"command": "x", "args": "y"}, "must be a list"),
        ({"command": "x", "args": [1]}, "`s.args[0]`: must be text"),
        ({"command": "x", "env": {"A=B": "c"}}, "variable's name"),
        ({"command": "x", "inherit": ["A B"]}, "variable's name"),
        ({"command": "x\x00y"}, "zero byte"),
        ({"command": "x", "timeout": 0}, "above 0"),
        ({"command": "x", "type": "http"}, "no address"),
        ({"command": "x", "type": "carrier-pigeon"}, "is not known"),
        ({"url": "ftp://x.test"}, "https://"),
        ({"url": "https://"}, "a host"),
        ({"url": "https://[::1"}, "not an address"),
        ({"url": "https://u:p@x.test"}, "user name or password"),
        ({"url": "https://x.test", "env": {"A": "b"}}, "no program"),
        ({"url": "https://x.test", "headers": {"A B": "c"}}, "header's name"),
        ({"url": "https://x.test", "headers": {"A": "b\r\nC: d"}}, "control character"),
        ({"url": "http://x.test", "headers": {"A": "b"}}, "unencrypted"),
        ({"url": "http://x.test", "oauth": True}, "unencrypted"),
    ],
)
def test_what_cannot_be_right_is_refused(raw, part):
    with pytest.raises(ConfigError) as found:
        server_spec("s", raw)
    assert part in str(found.value)


def test_what_is_fine_in_the_clear():
    assert server_spec("s", {"url": "http://127.0.0.1:99/mcp", "headers": {"A": "b"}}).url
    assert server_spec("s", {"url": "http://x.test/mcp"}).url


@pytest.mark.invariant("server and tool can be told apart in `server__tool`, whatever the tool is called")
@pytest.mark.parametrize(
    "name", ["", "-a", "_a", "a__b", "a_", "a b", "a.b", "ä", "a" * 33, "checkrein", "CheckRein"]
)
def test_names_that_cannot_be(name):
    with pytest.raises(ConfigError):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "A-b_c", "9", "a" * 32])
def test_names_that_can(name):
    check_name(name)


def test_names_that_differ_in_case_only_are_a_fault(write):
    body = {"mcpServers": {"git": {"command": "x"}, "Git": {"command": "y"}}}
    assert "in case only" in fault(write, body)


def test_what_another_user_can_write_is_a_fault(write):
    path = write({"mcpServers": {"a": {"command": "x"}}})
    path.chmod(0o606)
    assert "other users" in read_servers().fault


def test_writing_keeps_what_it_does_not_know(write):
    write({"note": 1, "mcpServers": {"a": {"command": "x", "x-mine": [1]}, "b": {"command": "y"}}})
    servers = dict(read_servers().servers)
    servers["a"] = msgspec.structs.replace(servers["a"], args=("1",), enabled=False)
    del servers["b"]
    write_servers(servers)
    assert json.loads(servers_file().read_text()) == {
        "note": 1,
        "mcpServers": {"a": {"command": "x", "args": ["1"], "enabled": False, "x-mine": [1]}},
    }
    assert stat.S_IMODE(servers_file().stat().st_mode) == 0o600
    assert [each.name for each in servers_file().parent.iterdir()] == ["servers.json"]


@pytest.mark.invariant("a file we cannot read is never written over")
def test_a_file_we_cannot_read_is_never_written_over(write):
    write("{ precious")
    with pytest.raises(ConfigError):
        write_servers([ServerSpec(name="a", command="x")])
    assert servers_file().read_text() == "{ precious"


def test_a_server_that_cannot_be_is_not_written(write):
    write({"mcpServers": {}})
    before = servers_file().read_bytes()
    with pytest.raises(ConfigError):
        write_servers([ServerSpec(name="a")])
    assert servers_file().read_bytes() == before


def test_a_folder_that_takes_no_file_is_said(home):
    (home / "config").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_servers([ServerSpec(name="a", command="x")])


def test_an_entry_reads_back_as_it_was():
    spec = ServerSpec(
        name="s", url="https://x.test", headers={"A": "b"}, transport="sse", share="client", trusted=True
    )
    assert server_spec("s", entry(spec)) == spec


def test_the_stamp_changes_with_the_file(write):
    before = stamp()
    write({"mcpServers": {"a": {"command": "x"}}})
    assert stamp() != before


def test_resolving_fills_references_in_and_keeps_the_fingerprint(monkeypatch, home):
    monkeypatch.setenv("HERE", "there")
    set_secret("key", "s3cret-value")
    spec = ServerSpec(
        name="s",
        command="${HERE}/x",
        args=("${NOPE:-standard}",),
        cwd="~/w",
        env={"K": "Bearer ${keyring:key}"},
    )
    found = resolve(spec)
    assert (found.command, found.args, found.env) == ("there/x", ("standard",), {"K": "Bearer s3cret-value"})
    assert found.cwd == str(home / "w")
    assert found.fingerprint == spec.fingerprint


@pytest.mark.invariant("a resolved server shown by accident shows no secret")
def test_a_resolved_server_shown_by_accident_shows_no_secret():
    set_secret("key", "s3cret-value")
    found = resolve(ServerSpec(name="s", command="x", env={"K": "${keyring:key}"}))
    assert "s3cret" not in f"{found} {found!r}"


def test_a_reference_without_a_value_is_named():
    with pytest.raises(ConfigError) as found:
        resolve(ServerSpec(name="s", command="x", env={"K": "${env:MISSING_THING}"}))
    assert "`s.env.K`" in str(found.value)
    assert "${env:MISSING_THING}" in str(found.value)


@pytest.mark.invariant("no value can add a header of its own")
def test_no_value_can_add_a_header_of_its_own(monkeypatch):
    monkeypatch.setenv("TRICK", "a\r\nX-Admin: yes")
    with pytest.raises(ConfigError) as found:
        resolve(ServerSpec(name="s", url="https://x.test", headers={"A": "${TRICK}"}))
    assert "X-Admin" not in str(found.value)


def test_a_resolved_address_is_checked_again(monkeypatch):
    monkeypatch.setenv("WHERE", "file:///etc/passwd")
    with pytest.raises(ConfigError):
        resolve(ServerSpec(name="s", url="${WHERE}"))


def test_the_fingerprint_is_of_what_makes_it_another_server():
    spec = ServerSpec(name="s", command="x")
    same = msgspec.structs.replace(spec, share="client", trusted=True, description="d", timeout=3.0)
    other = msgspec.structs.replace(spec, args=("y",))
    assert spec.fingerprint == same.fingerprint != other.fingerprint
