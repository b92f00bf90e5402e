"""What a stateless client carries for us: nobody else can read, change, pass on or use it twice."""

import asyncio
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway.messages import RpcError
from checkrein.doors.gateway.sealing import SECONDS, ForeignStateError, Seal
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

BOUND = {"owner": "http:1", "digest": "d"}


@pytest.fixture
def seal(tmp_path, pipeline):
    return Seal(tmp_path / "gateway", pipeline.store)


def take(seal, text, *, now, **more):
    return asyncio.run(seal.take(text, **{**BOUND, "now": now, **more}))


def close(seal, **more):
    return seal.close(**{**BOUND, "kind": "ask", "now": 100.0, **more})


def why(seal, text, **more):
    with pytest.raises(ForeignStateError) as found:
        take(seal, text, **{"now": 100.0, **more})
    assert found.value.code == -32602
    return found.value.why


@pytest.mark.invariant("a state works once, for the client and the request it was made for, for a while")
def test_what_was_sealed_comes_back_once(seal):
    text = close(seal, entry="e", carried="c")
    state = take(seal, text, now=101.0)
    assert (state.kind, state.entry, state.carried, state.owner) == ("ask", "e", "c", "http:1")
    assert why(seal, text) == "it was used before"


def test_what_nobody_could_carry_back_is_not_sealed(seal):
    with pytest.raises(RpcError):
        close(seal, carried="x" * (1 << 20))
    arguments = {"a": [1, "ä"]}
    assert take(seal, close(seal, arguments=arguments), now=100.0).arguments == arguments


@pytest.mark.invariant("a state works once, for the client and the request it was made for, for a while")
def test_it_is_bound_to_owner_request_and_time(seal):
    text = close(seal)
    assert why(seal, text, owner="http:2") == "it was given to another client"
    assert why(seal, text, digest="other") == "it belongs to another request"
    assert why(seal, text, now=100.0 + SECONDS + 1) == "it is too old"
    assert take(seal, text, now=100.0 + SECONDS), "what was refused is not used up"


def test_it_says_nothing_to_who_carries_it(seal):
    text = close(seal, entry="secret-entry", carried="secret-state")
    assert "secret" not in text and close(seal) != close(seal)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_every_changed_cut_or_lengthened_state_is_refused(seal, length):
    text = close(seal, carried="x" * length)
    for place in range(len(text)):
        other = "A" if text[place] != "A" else "B"
        assert why(seal, text[:place] + other + text[place + 1 :]) == "it is not one of ours"
        assert why(seal, text[:place]) == "it is not one of ours"
    for more in ("A", "AAAA", "=", "!", "\n", " ", "é"):
        assert why(seal, text + more) == "it is not one of ours"
        assert why(seal, more + text) == "it is not one of ours"


@pytest.mark.parametrize("odd", [None, 7, b"x", [], {}, "", "=", "AAAA", "A" * (2 << 20)])
def test_what_is_no_state_is_refused(seal, odd):
    assert why(seal, odd) == "it is not one of ours"


def test_the_key_outlives_the_server_and_is_the_owners_alone(tmp_path, pipeline):
    text = close(Seal(tmp_path / "gateway", pipeline.store))
    assert take(Seal(tmp_path / "gateway", pipeline.store), text, now=100.0).owner == "http:1"
    key = tmp_path / "gateway" / "seal.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32
    assert [path.name for path in key.parent.iterdir()] == ["seal.key"]


def test_another_installations_state_is_not_ours(tmp_path, pipeline, seal):
    assert why(seal, close(Seal(tmp_path / "other", pipeline.store))) == "it is not one of ours"


def test_a_key_that_was_cut_short_is_made_anew(tmp_path, pipeline):
    text = close(Seal(tmp_path / "gateway", pipeline.store))
    (tmp_path / "gateway" / "seal.key").write_bytes(b"short")
    anew = Seal(tmp_path / "gateway", pipeline.store)
    assert why(anew, text) == "it is not one of ours"
    assert take(anew, close(anew), now=100.0)


@pytest.mark.invariant("a request state works once, also across a restart")
def test_a_used_state_stays_used_after_a_restart(tmp_path, pipeline, seal):
    text = close(seal)
    take(seal, text, now=100.0)
    pipeline.store.close()
    store = SqliteStore.open(state_dir())
    try:
        assert why(Seal(tmp_path / "gateway", store), text) == "it was used before"
    finally:
        store.close()


def test_of_many_who_bring_a_state_at_once_one_is_heard(seal):
    text = close(seal)

    async def all_at_once():
        tries = [seal.take(text, **BOUND, now=100.0) for _ in range(20)]
        return await asyncio.gather(*tries, return_exceptions=True)

    came = asyncio.run(all_at_once())
    assert sum(isinstance(each, ForeignStateError) for each in came) == 19


def test_what_is_too_old_anyway_is_not_kept(seal, pipeline):
    for number in range(5):
        take(seal, close(seal, now=100.0 + number), now=100.0 + number)
    take(seal, close(seal, now=1e9), now=1e9)
    assert pipeline.store.query("SELECT count(*) FROM used_state") == [(1,)]


@given(st.one_of(st.text(), st.binary(), st.integers(), st.none()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_made_up_is_taken(seal, made_up):
    with pytest.raises(ForeignStateError):
        take(seal, made_up, now=0.0)
