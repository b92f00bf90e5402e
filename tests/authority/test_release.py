import pytest

from checkrein.call import tool_call
from checkrein.errors import InputError, NotFoundError, PersonOnlyError
from checkrein.settings import Settings

SECONDS = Settings().approval.release_seconds


@pytest.fixture
def decide(pipeline, project):
    def judge(command="curl https://x.example", session="s1", phase="building", **more):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": session}
        return pipeline.decide(tool_call({**raw, "cwd": project, **more}), phase=phase)

    return judge


def test_a_blocked_critical_call_passes_once_and_it_is_on_the_record(do, decide, recorded, asked):
    blocked = decide()
    assert blocked.verdict.stage == "floor"
    made = do("release.make", entry=blocked.entry)
    assert (made["entry"], made["tool"]) == (blocked.entry, "Bash")
    assert recorded("released")[-1]["actor"] == asked.actor
    assert decide("curl https://x.example/other").verdict.word == "deny"
    assert decide(cwd="/tmp").verdict.word == "deny"
    passed = decide(session="s2").verdict
    assert (passed.word, passed.stage) == ("allow", "release")
    assert decide().verdict.word == "deny"


def test_a_release_is_over_soon(do, decide, clock):
    do("release.make", entry=decide().entry)
    clock.now += SECONDS
    assert decide().verdict.word == "deny"


def test_a_second_release_lets_it_pass_a_second_time(do, decide):
    entry = decide().entry
    for _ in range(2):
        do("release.make", entry=entry)
        do("release.make", entry=entry)
        assert [decide().verdict.word for _ in range(2)] == ["allow", "deny"]


@pytest.mark.invariant("only what the floor blocked is released")
def test_only_what_the_floor_blocked_is_released(do, decide, user_settings):
    for command, phase in (("ls", "building"), ("make x", "building"), ("make x", "auditing")):
        with pytest.raises(InputError, match="not blocked for its critical risk"):
            do("release.make", entry=decide(command, phase=phase).entry)
    user_settings('[[rules]]\naction = "deny"\ntool = "Bash"')
    denied = decide("make y")
    assert denied.verdict.word == "deny"
    with pytest.raises(InputError, match="not blocked"):
        do("release.make", entry=denied.entry)
    with pytest.raises(NotFoundError):
        do("release.make", entry="nothing")


def test_a_released_call_that_ran_is_not_released_by_its_own_entry(do, decide):
    do("release.make", entry=decide().entry)
    passed = decide()
    with pytest.raises(InputError, match="not blocked"):
        do("release.make", entry=passed.entry)


def test_a_release_needs_the_passphrase_where_one_is_set(do, decide):
    do("passphrase.set", new="correct horse")
    entry = decide().entry
    for given in ({}, {"passphrase": "wrong horse"}, {"passphrase": None}, {"passphrase": 7}):
        with pytest.raises(PersonOnlyError, match="passphrase"):
            do("release.make", entry=entry, **given)
    assert decide().verdict.word == "deny"
    do("release.make", entry=entry, passphrase="correct horse")
    assert decide().verdict.word == "allow"
