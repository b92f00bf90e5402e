import os


def test_the_day_ends_by_itself_and_touches_nothing(run, home):
    before = dict(os.environ)
    text = run("demo", "--fast")
    for scene in ("ALLOW", "ASK", "DENY", "you approved", "you denied", "GOOD", "BROKEN"):
        assert scene in text
    assert "learning at double rate" in text
    assert not (home / "state").exists()
    assert dict(os.environ) == before
