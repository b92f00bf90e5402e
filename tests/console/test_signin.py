import pytest
from ground import Clock

from checkrein.console.signin import IDLE_SECONDS, LINK_SECONDS, SignIn, cookies_of


@pytest.fixture
def signin():
    clock = Clock()
    made = SignIn(clock)
    made.clock = clock
    return made


def test_a_link_opens_one_session_only(signin):
    link = signin.link()
    opened = signin.open(link)
    assert signin.session([opened.cookie], opened.place)
    assert signin.open(link) is None


def test_a_link_is_good_for_a_minute(signin):
    late, in_time = signin.link(), signin.link()
    signin.clock.now += LINK_SECONDS - 1
    assert signin.open(in_time)
    signin.clock.now += 1
    assert signin.open(late) is None


@pytest.mark.parametrize("secret", ["", "x", "\ud800", "ü" * 1000])
def test_nobody_guesses_a_link(signin, secret):
    signin.link()
    assert signin.open(secret) is None


def test_secrets_are_long_and_kept_as_hashes_only(signin):
    link = signin.link()
    assert len(link) >= 43
    opened = signin.open(link)
    kept = repr(vars(signin))
    assert link not in kept
    assert opened.cookie not in kept


def test_a_session_ends_when_nobody_uses_it(signin):
    opened = signin.open(signin.link())
    signin.clock.now += IDLE_SECONDS - 1
    assert signin.session([opened.cookie], opened.place)
    signin.clock.now += IDLE_SECONDS - 1
    assert signin.session([opened.cookie], opened.place, use=False)
    signin.clock.now += 1
    assert signin.session([opened.cookie], opened.place) is None


def test_a_cookie_is_good_only_below_its_own_path(signin):
    one, other = signin.open(signin.link()), signin.open(signin.link())
    assert one.place != other.place
    assert signin.session([one.cookie], other.place) is None
    assert signin.session(["forged", one.cookie], one.place)


def test_signing_out_ends_it(signin):
    opened = signin.open(signin.link())
    session = signin.session([opened.cookie], opened.place)
    assert signin.is_open(session)
    signin.close(session)
    assert not signin.is_open(session)
    assert signin.session([opened.cookie], opened.place) is None


def test_neither_links_nor_sessions_grow_without_end(signin):
    first = signin.link()
    for _ in range(50):
        signin.link()
    assert signin.open(first) is None
    opened = [signin.open(signin.link()) for _ in range(60)]
    alive = [each for each in opened if signin.session([each.cookie], each.place)]
    assert 0 < len(alive) < 60


def test_what_stands_for_a_link_ends_with_it_however_it_ends(signin):
    ended = []

    def link(name):
        return signin.link(lambda: ended.append(name))

    used, late = link("used"), link("late")
    assert signin.open(used)
    assert signin.open(used) is None
    assert ended == ["used"]
    signin.clock.now += LINK_SECONDS
    assert signin.open(late) is None
    signin.forget()
    assert ended == ["used", "late"]
    link("crowded out")
    for _ in range(50):
        signin.link()
    assert ended == ["used", "late", "crowded out"]
    link("at the end")
    opened = signin.open(signin.link())
    signin.end_links()
    assert ended[3:] == ["at the end"]
    assert signin.session([opened.cookie], opened.place)


def test_what_is_told_is_told_once(signin):
    opened = signin.open(signin.link())
    session = signin.session([opened.cookie], opened.place)
    session.tell("good", "done")
    assert session.hear() == [("good", "done")]
    assert session.hear() == []


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", []),
        ("checkrein=a", ["a"]),
        ("x=1; checkrein=a; checkrein=b", ["a", "b"]),
        ("checkrein", [""]),
        ("notcheckrein=a", []),
    ],
)
def test_every_cookie_of_our_name_is_looked_at(header, found):
    assert cookies_of(header) == found
