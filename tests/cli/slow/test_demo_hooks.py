from checkrein import knocking


def test_the_scene_runs_the_installed_lines_and_leaves_no_server(run, home):
    text = run("demo", "--fast")
    shown = text[text.index("real agent's hooks") : text.index("in front of MCP servers")]
    words = [line.split()[0] for line in shown.splitlines() if line.startswith(("ALLOW", "DENY"))]
    assert words == ["ALLOW", "DENY", "DENY", "ALLOW", "ALLOW", "ALLOW", "DENY", "DENY"]
    assert "you approved make release" in shown
    assert "you type /auditing" in shown
    assert "auditing phase" in shown
    assert not knocking.is_running()
