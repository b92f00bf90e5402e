import os

from checkrein.cli import demo as demo_module


def test_the_day_ends_by_itself_and_touches_nothing(run, home):
    before = dict(os.environ)
    text = run("demo", "--fast")
    for scene in ("ALLOW", "ASK", "DENY", "you approved", "you denied", "GOOD", "BROKEN"):
        assert scene in text
    assert "learning at double rate" in text
    assert not (home / "state").exists()
    assert dict(os.environ) == before


def test_scenes_whose_libraries_are_not_installed_say_so_and_the_day_goes_on(run, monkeypatch):
    monkeypatch.setattr(demo_module, "find_spec", lambda _name: None)
    text = run("demo", "--fast")
    assert "GOOD" in text
    for extra in ("eval", "chat"):
        assert f"pip install 'checkrein[{extra}]'" in text
