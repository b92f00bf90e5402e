import pytest

from checkrein.call import tool_call
from checkrein.errors import InputError, NotFoundError


@pytest.fixture
def granted(do, question):
    """A person says yes to a command and lets it reach further; the grant as it is listed."""

    def make(command="make x", **remember):
        asking = question(command)
        came = do("question.answer", id=asking, answer="approved", remember=remember or {"for": "always"})
        return next(each for each in do("grant.list") if each["id"] == came["grant"])

    return make


@pytest.fixture
def word(pipeline, project):
    def decide(command="make x"):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": "s1"}
        return pipeline.decide(tool_call(raw)).verdict.word

    return decide


def test_a_grant_says_what_for_by_whom_since_when_and_how_often_used(do, granted, word, asked, clock):
    made = granted(what="family", **{"for": "uses", "uses": 3})
    assert (made["what"], made["tool"], made["server"], made["session"]) == ("family", "Bash", None, "")
    assert (made["made_by"], made["channel"]) == (asked.actor, "terminal")
    assert (made["uses"], made["used"], made["last_used_at"]) == (3, 0, None)
    assert "`make x` in this project" in made["label"]
    clock.now += 60
    assert word() == "allow"
    (again,) = do("grant.list")
    assert again["used"] == 1
    assert again["last_used_at"] > made["made_at"]


def test_what_is_over_or_used_up_is_listed_no_more(do, granted, word, clock):
    granted("make x", **{"for": "uses", "uses": 1})
    granted("make y", **{"for": "until", "until": clock() + 60})
    granted("make z", **{"for": "always"})
    assert len(do("grant.list")) == 3
    word("make x")
    clock.now += 60
    assert [each["uses"] or each["until"] for each in do("grant.list")] == [None]


def test_a_revoked_grant_covers_nothing_from_the_next_call_on(do, granted, word, recorded, asked):
    made = granted()
    assert word() == "allow"
    assert do("grant.revoke", id=made["id"])["id"] == made["id"]
    assert word() == "ask"
    assert do("grant.list") == []
    assert recorded("grant_revoked")[-1]["actor"] == asked.actor
    with pytest.raises(InputError, match="revoked already"):
        do("grant.revoke", id=made["id"])


def test_a_grant_nobody_made_cannot_be_revoked(do):
    with pytest.raises(NotFoundError, match="no grant"):
        do("grant.revoke", id="g-nothing")
    with pytest.raises(InputError):
        do("grant.revoke")
