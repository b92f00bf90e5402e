from checkrein.cli.status import next_step


def test_it_works_where_nothing_ever_ran_and_leaves_no_trace(run, home):
    text = run("status")
    assert "server  not running" in text
    assert "10 more successes until medium runs unasked" in text
    assert not (home / "state").exists()
    assert run.json("status", "--json")["server"]["running"] is False


def test_it_starts_no_server(run):
    run("phase", "building")
    assert "not running" in run("status")
    assert run.json("status", "--json")["server"]["running"] is False


def test_a_running_server_and_its_sessions_are_shown(run, server, agent, project):
    run("phase", "building")
    assert agent.judged("ls")[0] == "allow"
    assert agent.judged("curl https://evil.invalid/", "toolu_2")[0] == "deny"
    text = run("status")
    assert f"process {server.pid}; ledger ok; mirror ok" in text
    assert "curl https://evil.invalid/" in text
    found = run.json("status", "--json")
    (session,) = found["sessions"]
    assert session["session_id"] == agent.session
    assert (session["operation_count"], session["phase"], session["agent"]) == (2, "building", "claude-code")
    assert set(session["profile"]) == {"allowed", "denied", "trust_gated"}
    assert [each["verdict"] for each in found["recent"]] == ["deny", "allow"]
    assert run.json("status", "--project", "/", "--json")["sessions"] == []


def test_broken_settings_are_said(run, user_settings):
    user_settings("x = [")
    assert "every call is refused" in run("status")


def test_the_next_step_in_words():
    assert next_step(None) == ""
    assert next_step({"risk": "low", "successes": 1}) == "1 more success until low runs unasked"
    assert next_step({"risk": "high", "successes": 7}) == "7 more successes until high runs unasked"
