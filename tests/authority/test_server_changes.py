"""Changes to the servers file: written, recorded and told to the gateway, or nothing of it."""

import pytest

from checkrein.errors import CheckreinError
from checkrein.settings.servers import read_servers, servers_file
from standing_gateway import VALUE, through


@pytest.fixture
def do(asked, gateway):
    return through(asked, gateway)


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


def test_a_change_that_cannot_be_written_is_not_recorded(do, recorded):
    servers_file().parent.mkdir(parents=True)
    servers_file().write_text("{ broken")
    with pytest.raises(CheckreinError, match="line 1"):
        do("upstream.add", name="a", entry={"command": "x"})
    assert recorded("servers_changed") == []
    assert servers_file().read_text() == "{ broken"
