import re

from checkrein import knocking


def test_the_scene_shows_what_the_gateway_does_and_leaves_nothing(run, home):
    text = run("demo", "--fast")
    shown = text[text.index("in front of MCP servers") : text.index("in scripts a model writes")]
    words = [line.split()[:2] for line in shown.splitlines() if re.match(r"ALLOW|ASK|DENY", line)]
    assert words == [
        ["DENY", "docs__search"],
        ["ALLOW", "docs__search"],
        ["ASK", "Checkrein"],
        ["ALLOW", "docs__add_page"],
        ["DENY", "docs__search"],
    ]
    sees = re.findall(r"demo-client sees: (.*)", shown)
    assert sees == ["nothing", "docs__add_page, docs__search", "docs__add_page"]
    assert "may demo-client run `add_page` of server `docs`?" in shown
    assert "Nobody has accepted it yet." in shown
    assert "It changed since a person decided about it." in shown
    assert "It speaks to the model rather than about itself" in shown
    record = shown[shown.index("on the record") :]
    assert re.findall(r"\((success|did not run)\)", record) == [
        "did not run",
        "success",
        "success",
        "did not run",
    ]
    assert not knocking.is_running()
    assert not (home / "state").exists()


def test_a_client_that_is_hung_up_on_does_not_wait_for_ever(run, monkeypatch):
    monkeypatch.setattr("checkrein.cli.demo_gateway._PATIENCE", 0.0)
    assert "hung up" in run("demo", "--fast", code=5)
    assert not knocking.is_running()
