import pytest

from checkrein import earning, overview
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.policy.trust import TrustState
from checkrein.settings import Settings
from checkrein.store.agents import Session, end_session, put_session
from checkrein.store.trust import put_trust

SETTINGS = Settings()
MODEL = earning.model_for(SETTINGS)


def ahead(score, domain="test_run", phase="building", operations=0):
    state = TrustState(score=score, successes=operations, total_operations=operations)
    return overview.prospects(domain, state, MODEL, SETTINGS, phase, 0.0)


def test_a_beginner_needs_ten_successes_for_medium():
    found = ahead(0.3)
    assert found["today"] == {"low": "logged_only", "medium": "human_required", "high": "human_required"}
    assert found["next"] == {"risk": "medium", "successes": 10}


def test_the_promise_of_the_next_step_is_kept_by_the_model():
    """After so many successes the level is not asked about any more; after one less it still is."""
    count = ahead(0.3)["next"]["successes"]
    state = MODEL.fresh(0.3)
    for _ in range(count - 1):
        state = MODEL.succeeded(state, 0.0)
    assert overview._decision("test_run", overview.Category.medium, state.score, SETTINGS, "building") == (
        "human_required"
    )
    state = MODEL.succeeded(state, 0.0)
    assert overview._decision("test_run", overview.Category.medium, state.score, SETTINGS, "building") == (
        "logged_only"
    )


def test_once_medium_runs_high_is_next_and_then_nothing():
    assert ahead(0.65, operations=30)["next"]["risk"] == "high"
    assert ahead(0.95, operations=90) == {
        "today": {"low": "auto_approved", "medium": "auto_approved", "high": "auto_approved"},
        "next": None,
    }


def test_what_the_phase_forbids_is_refused_whatever_was_earned():
    assert set(ahead(0.95, "git_remote")["today"].values()) == {"blocked"}
    assert ahead(0.95, "git_remote")["next"] is None
    assert set(ahead(0.95, "test_run", "planning")["today"].values()) == {"blocked"}


def test_a_gated_domain_asks_at_every_risk_until_the_gate():
    found = ahead(0.79, "shell_exec", operations=50)
    assert set(found["today"].values()) == {"human_required"}
    assert found["next"] == {"risk": "low", "successes": 3}


def test_a_step_out_of_reach_is_none(monkeypatch):
    monkeypatch.setattr(overview, "_FARTHEST", 3)
    assert ahead(0.3)["next"] is None


@pytest.fixture
def called(pipeline, project):
    def call(command, session="s1", **more):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": session}
        return pipeline.decide(tool_call({**raw, "door": "hooks"}), **more).entry

    return call


def test_calls_of_a_session_are_counted_filed_or_not(pipeline, called):
    for number in range(40):
        called(f"ls {number}")
    called("ls", session="s2")
    assert overview.operations(pipeline.store, "s1") == 40
    assert overview.operations(pipeline.store, "s2") == 1
    assert overview.operations(pipeline.store, "nobody") == 0


def test_the_whole_page(pipeline, called, project, clock, monkeypatch):
    monkeypatch.setattr(overview.time, "time", clock)
    switch(pipeline, "building", "ada", "terminal", project=project)
    switch(pipeline, "planning", "ada", "terminal", session="s2")
    for number, name in enumerate(("s1", "s2", overview.PROBES)):
        met = Session(agent="codex", id=name, project=project, started_at=clock.now + number)
        pipeline.store.write(lambda tx, met=met: put_session(tx, met))
    pipeline.store.write(lambda tx: end_session(tx, "codex", "s1", clock.now + 9))
    fields = {
        "score": 0.2,
        "successes": 0,
        "failures": 2,
        "total_operations": 2,
        "last_operated_at": clock.now,
        "is_warming_up": False,
        "warmup_remaining": 0,
    }
    pipeline.store.write(lambda tx: put_trust(tx, project, "test_run", fields))
    pipeline.store.write(lambda tx: put_trust(tx, project, "bad", {**fields, "score": 0.999}))
    ran = called("ls")
    pipeline.finish(ran, "success")
    asked = called("make x", asking=True)
    found = overview.overview(pipeline.store, project)
    assert (found["phase"]["name"], found["phase"]["is_set"]) == ("building", True)
    assert [(each["session_id"], each["phase"], each["operation_count"]) for each in found["sessions"]] == [
        ("s2", "planning", 0),
        ("s1", "building", 2),
    ]
    assert found["sessions"][1]["ended_at"] is not None
    assert "file_write_src" not in found["sessions"][0]["profile"]["allowed"]
    assert set(found["trust"]["domains"]) == {"test_run", "file_read"}
    assert found["trust"]["domains"]["test_run"]["score"] == 0.2
    assert set(found["trust"]["quarantined"]) == {"bad"}
    assert found["trust"]["unused"]["score"] == 0.3
    assert [each["id"] for each in found["questions"]] == [asked]
    assert [(each["id"], each["result"]) for each in found["recent"]] == [
        (asked, "unknown"),
        (ran, "success"),
    ]
    assert found["server"]["running"] is False


def test_broken_settings_show_as_a_fault(pipeline, project, user_settings):
    user_settings("x = [")
    assert "TOML" in overview.overview(pipeline.store, project)["fault"]


def test_a_door_to_a_server_that_is_gone_is_no_error(home):
    from checkrein.runtime import write_door

    write_door()
    assert overview.server()["running"] is False
