import re

from checkrein import knocking


def test_the_scene_shows_a_call_that_waits_over_a_restart_and_a_summary_that_forgets_nothing(run, home):
    text = run("demo", "--fast")
    shown = text[text.index("in a conversation") :]
    assert re.findall(r"^ASK *(\S+) (.*)", shown, re.MULTILINE) == [("docs__add_page", "Refnuds")]
    assert "you approved it, as Refunds" in shown
    assert "A person changed the arguments" in shown
    before, after = re.search(r"a summary: (\d+) tokens became (\d+)", shown).groups()
    assert int(after) < int(before)
    assert "I know teapot." in shown
    assert not knocking.is_running()
    assert not (home / "state").exists()
