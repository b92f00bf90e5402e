import pytest

from checkrein.store.phases import all_phases


@pytest.mark.parametrize("folder", ["", "/p"])
def test_a_place_without_a_phase_starts_in_building(do, pipeline, folder, recorded, asked):
    assert do("installation.add", agent="codex", folder=folder) == {"phase": "building"}
    assert do("installation.list") == [{"agent": "codex", "folder": folder}]
    assert [each[:3] for each in all_phases(pipeline.store)] == [(folder, "", "building")]
    assert recorded("installed")[0]["actor"] == asked.actor
    assert recorded("phase_changed")[0]["channel"] == "install"


def test_a_phase_that_is_set_stays(do, pipeline):
    do("phase.set", name="planning")
    assert do("installation.add", agent="codex", folder="/p") == {"phase": "planning"}
    assert len(all_phases(pipeline.store)) == 1


def test_installing_twice_is_one_place_and_removing_forgets_it(do, recorded):
    for _ in range(2):
        do("installation.add", agent="codex", folder="/p")
    do("installation.add", agent="cursor", folder="/p")
    do("installation.remove", agent="codex", folder="/p")
    assert do("installation.list") == [{"agent": "cursor", "folder": "/p"}]
    assert len(recorded("uninstalled")) == 1
