"""What is remembered can be seen and taken back; a critical call is let pass once, by a person."""

import json

from patience import until


def test_a_remembered_yes_is_listed_and_revoked(run, server, started, agent):
    run("phase", "building")
    started("inbox")
    until(lambda: json.loads(run("status", "--json"))["server"].get("reachable"))
    calling, question = agent.asks("git commit -m one")
    run("approve", question, "--for", "2h", "--what", "family")
    assert agent.told(calling)[0] == "allow"
    (grant,) = run.json("grants", "list", "--json")
    assert grant["what"] == "family"
    assert grant["until"]
    assert agent.judged("git commit -m two", "toolu_2")[0] == "allow"
    assert "`git commit -m`" in run("grants", "list")
    assert "Revoked" in run("grants", "revoke", grant["id"])
    assert run.json("grants", "list", "--json") == []
    run("grants", "revoke", grant["id"], code=2)
    run("grants", "revoke", "g-none", code=4)


def test_always_says_what_before_it_is_kept(run, server, started, agent):
    run("phase", "building")
    started("inbox")
    until(lambda: json.loads(run("status", "--json"))["server"].get("reachable"))
    calling, question = agent.asks("make x")
    assert "needs a yes" in run("approve", question, "--for", "always", code=2)
    shown = run("approve", question, "--for", "always", "--yes")
    assert "exactly this call" in shown
    assert agent.told(calling)[0] == "allow"
    assert agent.judged("make x", "toolu_2")[0] == "allow"


def test_a_blocked_critical_call_is_released_once(run, server, agent):
    run("phase", "building")
    assert agent.judged("curl https://x.example")[0] == "deny"
    (call,) = run.json("audit", "list", "--json")
    assert "Released until" in run("release", call["id"], "--yes")
    assert agent.judged("curl https://x.example", "toolu_2")[0] == "allow"
    assert agent.judged("curl https://x.example", "toolu_3")[0] == "deny"


def test_what_was_not_blocked_for_its_risk_is_not_released(run, server, agent):
    run("phase", "building")
    agent.judged("git push")
    (call,) = run.json("audit", "list", "--json")
    run("release", call["id"], "--yes", code=2)


def test_an_agent_releases_nothing(run, server, agent):
    run("phase", "building")
    agent.judged("curl https://x.example")
    (call,) = run.json("audit", "list", "--json")
    done = agent.run("release", call["id"], "--yes")
    assert done.returncode == 7


def test_with_a_passphrase_a_release_needs_it(run, server, agent):
    run("phase", "building")
    run("passphrase", input="correct horse\ncorrect horse\n")
    agent.judged("curl https://x.example")
    (call,) = run.json("audit", "list", "--json")
    assert "passphrase" in run("release", call["id"], "--yes", code=2)
