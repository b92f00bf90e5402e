import pytest

from checkrein.authority.phase import switch
from checkrein.errors import InputError


def test_the_nearest_phase_counts(do, project, pipeline):
    assert do("phase.show", project=project) == {"phase": "auditing", "is_set": False, "set": []}
    do("phase.set", name="planning")
    do("phase.set", name="building", project=project)
    do("phase.set", name="auditing", session="s1")
    assert do("phase.show", project="/elsewhere")["phase"] == "planning"
    assert do("phase.show", project=project)["phase"] == "building"
    assert do("phase.show", project=project, session="s1")["phase"] == "auditing"
    assert do("phase.clear", session="s1") == 1
    assert do("phase.show", project=project, session="s1")["phase"] == "building"
    assert do("phase.clear", session="s1") == 0


def test_a_phase_nobody_defined_is_refused(do, recorded):
    with pytest.raises(InputError, match="no phase 'sleeping'"):
        do("phase.set", name="sleeping")
    assert recorded("phase_changed") == []


def test_who_switched_it_and_how_is_recorded(pipeline, do, recorded, asked):
    switch(pipeline, "building", "ada", "claude-code", session="s1")
    do("phase.set", name="planning", project="/p")
    do("phase.clear", project="/p")
    assert [(each["actor"], each["channel"], each["phase"]) for each in recorded("phase_changed")] == [
        ("ada", "claude-code", "building"),
        (asked.actor, "terminal", "planning"),
        (asked.actor, "terminal", None),
    ]
