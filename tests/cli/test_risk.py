def test_a_known_command_is_described(run):
    known = run.json("risk", "table", "git", "push", "--json")
    assert known["command"] == "git push"
    assert "options" in run("risk", "table", "sort")


def test_an_unknown_command_gets_a_hint(run):
    assert "Did you mean `sort`?" in run("risk", "table", "sortt", code=4)
    assert "[commands]" in run("risk", "table", "zzqqxx", code=4)


def test_a_user_s_own_entry_is_known_and_used(run, user_settings):
    assert run.json("explain", "frobnicate a b", "--json")["risk"]["category"] == "medium"
    user_settings('[commands.frobnicate]\nabout = "reads our telemetry"\nargs = "read*"')
    assert run.json("explain", "frobnicate a b", "--json")["risk"]["category"] == "low"
    assert run.json("risk", "table", "frobnicate", "--json")["about"] == "reads our telemetry"
    user_settings('[commands.frobnicate]\nargz = "read*"')
    assert "argz" in run("config", "check", code=3)


def test_a_host_someone_vouches_for_is_high_not_critical(run, user_settings):
    line = "curl https://api.example.com/pay"
    assert run.json("explain", line, "--json")["risk"]["category"] == "critical"
    user_settings('[network]\nknown_hosts = ["api.example.com"]')
    assert run.json("explain", line, "--json")["risk"]["category"] == "high"


def test_a_project_s_table_only_tightens(run, project):
    from pathlib import Path

    path = Path(project, "checkrein.toml")
    path.write_text(
        '[commands.ls]\nrisk = "high"\n[commands.frobnicate]\nargs = "read*"\n'
        '[network]\nknown_hosts = ["x"]\n'
    )
    assert run.json("explain", "ls", "--json")["risk"]["category"] == "high"
    assert run.json("explain", "frobnicate a", "--json")["risk"]["category"] == "medium"
    assert run.json("explain", "curl https://x/", "--json")["risk"]["category"] == "critical"
