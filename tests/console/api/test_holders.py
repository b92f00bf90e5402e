import pytest
from ground import Clock

from checkrein.console.api.holders import PER_MINUTE, WRONG_PER_MINUTE, Holders
from checkrein.store.api_tokens import API_TOKENS, ApiToken
from checkrein.store.tokens import hash_of


@pytest.fixture
def token(pipeline):
    made_id, token = API_TOKENS.new()
    made = ApiToken(
        id=made_id,
        name="ci",
        hash=hash_of(token),
        may_change=True,
        may_answer=False,
        made_at=1.0,
        made_by="ada",
    )
    pipeline.store.write(lambda tx: API_TOKENS.add(tx, made))
    return made_id, token


@pytest.fixture
def holders(pipeline, clock):
    return Holders(pipeline.store, clock, Clock())


def test_a_whole_token_says_whose_it_is(holders, token):
    assert holders.holder(f"Bearer {token[1]}").name == "ci"
    assert holders.holder(f"bearer  {token[1]} ").name == "ci"


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {0}",
        "{0}",
        "Bearer {0}x",
        "Bearer ckrein{0}",
        "Bearer é{0}",
        "Bearer \ud800",
    ],
)
def test_anything_else_says_nothing(holders, token, shown):
    assert holders.holder(shown.format(token[1])) is None


def test_an_endless_token_is_not_looked_at(holders, token):
    assert holders.holder("Bearer ckapi_" + token[0] + "_" + "x" * 1_000_000) is None


def test_revoking_counts_at_once(holders, token, pipeline):
    assert holders.is_living(token[0])
    pipeline.store.write(lambda tx: API_TOKENS.revoke(tx, "ci", "ada", 2.0))
    assert not holders.is_living(token[0])
    assert holders.holder(f"Bearer {token[1]}") is None


def test_a_minute_holds_so_many_requests(holders, token):
    assert [holders.take(token[0]) for _ in range(PER_MINUTE)] == [0.0] * PER_MINUTE
    assert holders.take(token[0]) > 0
    assert [holders.take("") for _ in range(WRONG_PER_MINUTE)] == [0.0] * WRONG_PER_MINUTE
    assert holders.take("") > 0


def test_the_last_use_is_kept_to_the_minute(holders, token, pipeline, clock):
    holders.note(token[0])
    first = API_TOKENS.living(pipeline.store)[0].used_at
    assert first == clock()
    before = pipeline.store.writes_to("api_token")
    holders.note(token[0])
    assert pipeline.store.writes_to("api_token") == before
    clock.pass_days(1)
    holders.note(token[0])
    assert API_TOKENS.living(pipeline.store)[0].used_at > first
