import pytest

from checkrein.doors.gateway.tokens import Bucket, Shown, Tokens
from checkrein.settings.sources import state_dir
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.sqlite import SqliteStore
from checkrein.store.tokens import hash_of


@pytest.fixture
def store(home):
    made = SqliteStore.open(state_dir())
    yield made
    made.close()


@pytest.fixture
def tokens(store):
    return Tokens(store, 60, lambda: 0.0)


@pytest.fixture
def add(store):
    def make(name="laptop"):
        made_id, token = CLIENTS.new()
        made = GatewayClient(id=made_id, name=name, hash=hash_of(token), made_at=1.0, made_by="ada")
        store.write(lambda tx: CLIENTS.add(tx, made))
        return token

    return make


def header(token):
    return f"Bearer {token}".encode()


def test_a_token_says_who_shows_it(tokens, add):
    assert not tokens.exist()
    one, two = add(), add("phone")
    assert tokens.exist()
    assert (tokens.holder(header(one)).name, tokens.holder(header(two)).name) == ("laptop", "phone")
    assert tokens.holder(b"bearer  " + one.encode()).name == "laptop"
    assert tokens.holder(header(one)) is tokens.holder(header(one))


@pytest.mark.invariant("only a whole token that was not revoked lets anybody in")
def test_anything_else_says_nothing(tokens, add):
    token = add()
    other = add("phone")
    mixed = "_".join([*token.split("_")[:2], other.split("_", 2)[2]])
    wrong = [token[:-1], token + "x", token.upper(), mixed, "", "x", "ckrein__", "é" * 40, token + "a" * 300]
    assert [tokens.holder(header(each)) for each in wrong] == [None] * len(wrong)
    for raw in (b"", b"Bearer", token.encode(), b"Basic " + token.encode(), b"Bearer\xff\xfe", b"\x00" * 50):
        assert tokens.holder(raw) is None


def test_a_revoked_token_is_none_from_that_moment(tokens, add, store):
    token = add()
    keeps = add("phone")
    kept = tokens.holder(header(keeps))
    assert tokens.holder(header(token)) is not None
    store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 2.0))
    assert tokens.holder(header(token)) is None
    assert tokens.holder(header(keeps)) is kept


def test_what_others_may_write_is_read_every_time(add, store, home):
    token = add()
    reader = SqliteStore.open(state_dir(), read_only=True)
    tokens = Tokens(reader, 60, lambda: 0.0)
    assert tokens.holder(header(token)) is not None
    store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 2.0))
    assert tokens.holder(header(token)) is None
    reader.close()


class Counted(Tokens):
    """Counts how often a token was compared."""

    compared = 0

    def holder(self, authorization):
        self.compared += 1
        return super().holder(authorization)


def test_what_is_shown_again_is_compared_again_after_the_table_was_written_to(add, store):
    tokens = Counted(store, 60, lambda: 0.0)
    token = add()
    shown = Shown(header(token))
    found = [tokens.holder_again(shown) for _ in range(3)]
    assert found == [tokens.holder(header(token))] * 3 and tokens.compared == 2
    add("phone")
    assert tokens.holder_again(shown) is found[0] and tokens.compared == 3


@pytest.mark.invariant("what was found before holds while nobody wrote, so a revoked token is none at once")
def test_a_token_shown_again_is_none_from_the_moment_it_is_revoked(tokens, add, store):
    token, keeps = add(), add("phone")
    shown, kept = Shown(header(token)), Shown(header(keeps))
    assert tokens.holder_again(shown) and tokens.holder_again(kept)
    store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 2.0))
    assert tokens.holder_again(shown) is None
    assert tokens.holder_again(kept) is tokens.holder(header(keeps))


def test_what_said_nothing_may_say_something_later(tokens, add, store):
    made_id, token = CLIENTS.new()
    shown = Shown(header(token))
    assert tokens.holder_again(shown) is None and tokens.holder_again(shown) is None
    made = GatewayClient(id=made_id, name="laptop", hash=hash_of(token), made_at=1.0, made_by="ada")
    store.write(lambda tx: CLIENTS.add(tx, made))
    assert tokens.holder_again(shown).name == "laptop"


def test_what_others_may_write_is_compared_every_time(add, store):
    shown = Shown(header(add()))
    reader = SqliteStore.open(state_dir(), read_only=True)
    tokens = Counted(reader, 60, lambda: 0.0)
    assert tokens.holder_again(shown) and tokens.holder_again(shown) and tokens.compared == 2
    store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 2.0))
    assert tokens.holder_again(shown) is None
    reader.close()


def test_no_token_can_be_read_off_its_holder(tokens, add):
    token = add()
    holder = tokens.holder(header(token))
    secret = token.split("_", 2)[2]
    assert all(secret not in str(getattr(holder, name)) for name in type(holder).__slots__)


def test_a_bucket_fills_up_again():
    bucket = Bucket(60, 100.0)
    assert [bucket.take(100.0) for _ in range(60)] == [0.0] * 60
    assert bucket.take(100.0) == 1.0
    assert bucket.take(100.5) == 0.5
    assert bucket.take(101.0) == 0.0
    assert bucket.take(101.0) == 1.0
    assert [bucket.take(10_000.0) for _ in range(61)] == [0.0] * 60 + [1.0]
