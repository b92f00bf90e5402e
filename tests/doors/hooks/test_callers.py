"""Every event belongs to a session, and a session to the project it began in."""

import pytest


def test_the_project_is_where_the_session_began(agent, home):
    (home / "elsewhere" / ".git").mkdir(parents=True)
    agent.send("SessionStart", source="startup")
    agent.call("ls", cwd=str(home / "elsewhere"))
    assert agent.entries()[0].project == agent.project


@pytest.mark.parametrize("cwd", ["/nul\x00byte", "/" + "x" * 5000])
def test_a_folder_nobody_can_use_is_refused_and_recorded(agent, cwd):
    assert agent.call("ls", cwd=cwd, session_id="fresh")[2] == 2
    assert agent.entries()[-1].decision == "blocked"
