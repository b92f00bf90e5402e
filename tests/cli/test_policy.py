from pathlib import Path

LOOSE = '[[rules]]\naction = "allow"\ntool = "Bash"\n'


def test_a_project_s_file_is_shown_accepted_and_revoked(run, project):
    assert "There is no" in run("policy", "show", code=4)
    path = Path(project, "checkrein.toml")
    path.write_text(LOOSE)
    assert run.json("policy", "show", "--json")["accepted"] is False
    assert "allow rule(s) ignored" in run("policy", "show")
    assert run.json("explain", "make x", "--json")["verdict"] == "ask"
    assert "Accepted" in run("policy", "accept", "--yes")
    assert run.json("policy", "show", "--json")["accepted"] is True
    assert run.json("explain", "make x", "--json")["verdict"] == "allow"
    path.write_text(LOOSE + "\n")
    assert run.json("policy", "show", "--json")["accepted"] is False
    path.write_text(LOOSE)
    run("policy", "revoke")
    assert run.json("explain", "make x", "--json")["verdict"] == "ask"
    assert "4 record(s)" in run("audit", "verify")


def test_accepting_needs_a_person_or_an_explicit_yes(run, project):
    Path(project, "checkrein.toml").write_text(LOOSE)
    assert "needs a yes" in run("policy", "accept", code=2)
    assert run.json("policy", "show", "--json")["accepted"] is False


def test_what_would_break_everything_cannot_be_accepted(run, project):
    path = Path(project, "checkrein.toml")
    path.write_text("[trust]\ninitial_score = 0.9")
    assert "initial_score" in run("policy", "accept", "--yes", code=3)
    path.write_text('[[rules]]\naction = "allow"\n')
    assert "rules[1]" in run("policy", "accept", "--yes", code=3)
