from checkrein.settings.secrets import expanded, secrets_file
from checkrein.settings.servers import ServerSpec, write_servers

VALUE = "hunter2-hunter2"


def test_a_value_comes_in_by_a_pipe_and_never_out(run, server):
    shown = run("servers", "secret", "set", "gh", input=f"{VALUE}\n")
    shown += run("servers", "secret", "list") + run("servers", "secret", "list", "--json")
    assert VALUE not in shown
    assert expanded("${keyring:gh}", "x") == VALUE
    assert run.json("servers", "secret", "set", "gh", "--json", input="other") == {
        "name": "gh",
        "place": "file",
        "used_by": [],
    }


def test_who_needs_it_is_said(run, server):
    write_servers([ServerSpec(name="a", command="x", env={"K": "${keyring:k}"}, enabled=False)])
    assert "not set" in run("servers", "secret", "list")
    assert "checkrein servers restart a" in run("servers", "secret", "set", "k", input=VALUE)
    assert "needs a yes" in run("servers", "secret", "remove", "k", code=2)
    assert "Still referred to by: a" in run("servers", "secret", "remove", "k", "--yes")
    assert VALUE not in secrets_file().read_text()


def test_what_cannot_be_kept(run, server):
    assert "no value" in run("servers", "secret", "set", "x", input="", code=2)
    assert "secret's name" in run("servers", "secret", "set", "a b", input=VALUE, code=2)
    assert "There is no secret" in run("servers", "secret", "remove", "ghost", "--yes", code=4)
