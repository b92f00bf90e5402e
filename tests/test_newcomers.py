import json

import pytest

from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.newcomers import candidates, entry_of, looks_secret, mark, pairs_of, words_of
from checkrein.settings.servers import server_spec

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def cursor(home):
    def write(servers):
        path = home / ".cursor" / "mcp.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("API_KEY", "anything at all", True),
        ("GITHUB_TOKEN", TOKEN, True),
        ("HARMLESS", TOKEN, True),
        ("Authorization", f"Bearer {TOKEN}", True),
        ("API_KEY", "", False),
        ("TOKEN", "~/token.txt", False),
        ("DEBUG", "true", False),
        ("CITY", "Dresden", False),
        ("MY_KEY", "xyz", True),
        ("X-Api-Key", "abc", True),
        ("DATABASE_URL", "postgres://ada:hunter22@db.test/x", True),
        ("argument", f"--token={TOKEN}", True),
        ("NODE_ENV", "production", False),
        ("SSH_KEY", "~/.ssh/id_ed25519", False),
        ("URL", "https://api.example.test/v1", False),
        ("argument", "@modelcontextprotocol/server-filesystem", False),
        ("y", "some-package@1.2.3", False),
    ],
)
def test_what_looks_like_a_secret(name, value, secret):
    assert looks_secret(name, value) is secret


def test_words_are_a_shells_and_nothing_runs():
    assert words_of("npx -y 'a b' \"$HOME\" $(id) *.py") == ["npx", "-y", "a b", "$HOME", "$(id)", "*.py"]


def test_a_tilde_is_the_home(home):
    assert words_of("run ~/notes ~ a~/b ~else") == ["run", f"{home}/notes", str(home), "a~/b", "~else"]


def test_a_quote_without_end_is_said():
    with pytest.raises(InputError, match="quote"):
        words_of("run 'x")


def test_lines_become_a_table():
    assert pairs_of("A=1\n\n B = two = 2 \n", "=", "variables") == {"A": "1", "B": "two = 2"}


@pytest.mark.invariant("what stands in the wrong place may be a secret and is not repeated")
@pytest.mark.parametrize("text", [TOKEN, f"={TOKEN}", f"A=1\n{TOKEN}"])
def test_a_line_in_the_wrong_place_is_not_repeated(text):
    with pytest.raises(InputError, match="Line") as raised:
        pairs_of(text, "=", "variables")
    assert TOKEN not in str(raised.value)


def test_what_a_person_writes_is_an_entry_without_its_secrets():
    raw = {"command": "run", "args": ["--token", TOKEN], "env": {"KEY": "s3cr3t-thing", "CITY": "Rome"}}
    entry, secrets = entry_of("mine", raw)
    assert entry["env"] == {"KEY": "${keyring:mine.KEY}", "CITY": "Rome"}
    assert entry["args"] == ["--token", "${keyring:mine.argument-2}"]
    assert secrets == {"mine.KEY": "s3cr3t-thing", "mine.argument-2": TOKEN}
    assert "trusted" not in entry
    assert entry_of("mine", {**raw, "trusted": True})[0]["trusted"] is True


@pytest.mark.parametrize("raw", [{}, {"command": "x", "url": "https://a.example/"}, {"url": "ftp://a"}])
def test_what_cannot_be_a_server_is_said(raw):
    with pytest.raises(InputError):
        entry_of("mine", raw)


def test_a_name_must_be_usable():
    with pytest.raises(ConfigError):
        entry_of("no spaces", {"command": "x"})


def test_servers_of_other_programs_are_found_with_their_secrets_set_apart(cursor):
    path = cursor({"git": {"command": "git-mcp", "env": {"GITHUB_TOKEN": TOKEN}, "trusted": True}})
    found = candidates("cursor", "", {})
    assert found.files == (str(path),)
    (item,) = found.items
    assert (item.name, item.state) == ("git", "new")
    assert TOKEN not in str(item.shown())
    assert "trusted" not in item.entry


def test_a_projects_own_file_is_read_when_a_project_is_named(home, project, cursor):
    cursor({"one": {"command": "one"}})
    other = home / "project" / ".cursor" / "mcp.json"
    other.parent.mkdir()
    other.write_text('{"mcpServers": {"two": {"command": "two"}}} // said so', encoding="utf-8")
    assert [each.name for each in candidates("cursor", "", {}).items] == ["one"]
    assert [each.name for each in candidates("cursor", project, {}).items] == ["one", "two"]


def test_a_taken_name_gets_a_number(cursor):
    cursor({"git": {"command": "git-mcp"}})
    taken = {"git": server_spec("git", {"command": "another"})}
    (item,) = candidates("cursor", "", taken).items
    assert (item.name, item.state) == ("git-2", "new")


def test_the_mark_is_another_once_another_thing_would_run(cursor):
    def marked(**raw):
        cursor({"git": raw})
        return mark(candidates("cursor", "", {}).items[0])

    first = marked(command="git-mcp")
    assert marked(command="git-mcp") == first
    assert marked(command="git-mcp", args=["--evil"]) != first
    assert marked(command="git-mcp", env={"LD_PRELOAD": "x.so"}) != first


def test_what_is_not_there_is_said():
    with pytest.raises(NotFoundError, match="no such program"):
        candidates("../../etc/passwd", "", {})
    with pytest.raises(NotFoundError, match=r"mcp\.json"):
        candidates("cursor", "", {})


def test_a_file_that_is_no_text_is_said(home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="UTF-8"):
        candidates("cursor", "", {})
