"""Nothing secret survives, nothing else is touched, whatever comes in."""

import json
import re
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
from ground import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkrein.errors import ConfigError
from checkrein.ledger.redact import MASK, TOO_DEEP, Masking, Redactor, _bare_shapes, _shapes
from checkrein.ledger.secrets import BARE_SHAPE, PLAIN, SHAPE, SHAPE_RUN

HERE = Path(__file__).parent
SECRETS = tomllib.loads((HERE / "secrets.toml").read_text(encoding="utf-8"))["row"]
LOOKALIKES = tomllib.loads((HERE / "lookalikes.toml").read_text(encoding="utf-8"))
SHAPES = [row for row in SECRETS if "shape" in row]
redactor = Redactor()


def planted(value, secret):
    """The row with the secret where `@@` stands, in keys too."""
    if isinstance(value, str):
        return value.replace("@@", secret)
    if isinstance(value, dict):
        return {planted(key, secret): planted(item, secret) for key, item in value.items()}
    return [planted(item, secret) for item in value] if isinstance(value, list) else value


def row_id(row):
    return row.get("shape") or str(row.get("text") or row["value"])[:60]


@pytest.mark.parametrize("row", SECRETS, ids=row_id)
def test_only_the_secret_is_masked(row):
    template = row.get("text") or row["value"]
    masked = redactor.value(planted(template, "".join(row["parts"])))
    assert masked == row.get("becomes", planted(template, MASK))
    assert redactor.value(masked) == masked


@pytest.mark.parametrize(
    "value", [*LOOKALIKES["text"], *LOOKALIKES["value"]], ids=lambda value: str(value)[:60]
)
def test_what_only_looks_like_a_secret_stays(value):
    assert redactor.value(value) == value


def test_the_tables_are_large():
    assert len(SECRETS) >= 80
    assert len(LOOKALIKES["text"]) + len(LOOKALIKES["value"]) >= 80


# --- values ---------------------------------------------------------------------------------------------


def test_what_hangs_under_a_secret_name_is_masked_but_for_booleans_and_nothing():
    given_ = {
        "token": 12,
        "secret": 1.5,
        "password": True,
        "api_key": None,
        "cookie": b"x",
        "private_key": "",
    }
    assert redactor.value(given_) == {
        "token": MASK,
        "secret": MASK,
        "password": True,
        "api_key": None,
        "cookie": MASK,
        "private_key": "",
    }


def test_containers_keep_their_kind_and_the_original_is_not_touched():
    original = {"list": [1, ("a", {"password": "hunter2"})], 5: {"credentials": ["a", {"deep": ("b",)}]}}
    masked = redactor.value(original)
    assert masked == {"list": [1, ("a", {"password": MASK})], 5: {"credentials": [MASK, {"deep": (MASK,)}]}}
    assert original["list"][1][1] == {"password": "hunter2"}
    assert masked["list"] is not original["list"]


def test_keys_that_become_equal_when_masked_are_all_kept():
    first, second = ("ghp" + "_" + letter * 36 for letter in "ab")
    assert list(redactor.value({first: 1, second: 2}).values()) == [1, 2]


@pytest.mark.parametrize(("depth", "survives"), [(1, True), (64, True), (65, False), (5000, False)])
def test_what_is_nested_too_deep_is_replaced(depth, survives):
    value = "leaf"
    for _ in range(depth):
        value = [value]
    masked = redactor.value(value)
    assert ("leaf" in str(masked)) is survives
    assert (TOO_DEEP in str(masked)) is not survives
    assert redactor.value(masked) == masked


def test_what_is_too_deep_under_a_secret_name_stays_so():
    value = "leaf"
    for _ in range(70):
        value = {"password": value}
    masked = redactor.value(value)
    assert redactor.value(masked) == masked


# --- the user's additions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["badge_number", "badgeNumber", "BADGE-NUMBER", "X-Badge-Number", "my_badge_number"]
)
def test_a_key_of_the_user_is_known_in_every_spelling(name):
    own = Redactor(Masking(keys=("badgeNumber", "")))
    assert own.value({name: "4711-0815", "number": "1"}) == {name: MASK, "number": "1"}
    assert own.text(f"run --{name}=4711 x\n{name}: '0815'") == f"run --{name}={MASK} x\n{name}: '{MASK}'"
    assert redactor.value({name: "4711"}) == {name: "4711"}


def test_a_key_of_the_user_may_be_in_any_script():
    assert Redactor(Masking(keys=("пароль",))).value({"Пароль": "x", "имя": "y"}) == {
        "Пароль": MASK,
        "имя": "y",
    }


def test_a_pattern_of_the_user_masks_its_match_or_its_first_group():
    own = Redactor(Masking(patterns=(r"EMP-\d+", r"card (\d{4})\b", "(never)?x*")))
    text = "EMP-12 paid with card 4711, \ud800 EMP-13"
    assert own.text(text) == f"{MASK} paid with card {MASK}, \ud800 {MASK}"
    assert own.text(own.text(text)) == own.text(text)
    assert own.value({"note": "EMP-1"}) == {"note": MASK}


@pytest.mark.parametrize("pattern", ["(", r"a(?=b)", r"(a)\1", "a{99999}"])
def test_a_pattern_that_is_not_re2_is_refused_where_it_was_written(pattern):
    with pytest.raises(ConfigError) as caught:
        Redactor(Masking(patterns=("fine", pattern)))
    assert (caught.value.key, caught.value.value) == ("masking.patterns", pattern)
    assert caught.value.reason
    assert caught.value.remedy


# --- whatever comes in ----------------------------------------------------------------------------------

# Pieces that the patterns care about, so that random text reaches the corners.
PIECES = r"""
    password token API_KEY Authorization Cookie Bearer --secret -p mysql curl docker login echo sudo -S config
    set ENV user name value eyJ -----BEGIN PRIVATE KEY----- -----END [masked] hunter2 x1 a str None
    :// @ = : == => , ; & | ? " ' ` \ \" \n $ ${ } $( ) { [ ] < > # !
""".split()
noise = st.lists(st.sampled_from([*PIECES, " ", "\n", "\t"]) | st.text(max_size=4), max_size=30).map("".join)
anything = st.text(st.characters(), max_size=200) | noise
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(anything)
def test_text_never_raises_and_masking_twice_changes_nothing(text):
    once = redactor.text(text)
    assert redactor.text(once) == once


@given(values)
def test_values_never_raise_and_masking_twice_changes_nothing(value):
    once = redactor.value(value)
    assert repr(redactor.value(once)) == repr(once)


@pytest.mark.parametrize("row", SHAPES, ids=row_id)
@settings(max_examples=examples(25))
@given(
    before=anything,
    after=anything,
    left=st.sampled_from(" \n\t\"'=(,;|>"),
    right=st.sampled_from(" \n\t\"');|<"),
)
def test_a_token_that_gives_itself_away_never_survives(row, before, after, left, right):
    secret = "".join(row["parts"])
    context, end = row.get("context", ""), row.get("after", "")
    assert secret not in redactor.text(f"{before}{left}{context}{secret}{end}{right}{after}")


@given(st.text("abcXYZ019!#%^&*+=_-. ", max_size=40))
def test_a_password_never_survives_in_a_dict_or_in_json(noise):
    secret = f"{noise}hunter2"
    assert redactor.value({"a": [{"dbPassword": secret}]}) == {"a": [{"dbPassword": MASK}]}
    assert redactor.text(json.dumps({"a": 1, "dbPassword": secret})) == json.dumps(
        {"a": 1, "dbPassword": MASK}
    )


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=40))
def test_a_quoted_password_never_survives_in_a_command(noise):
    """Whatever the shell lets one write between single quotes, unless it is a reference or a path."""
    secret = f"Hunter2{noise}".replace("'", "")
    assume(not PLAIN.fullmatch(secret))
    assert redactor.text(f"DB_PASSWORD='{secret}' ./run") == f"DB_PASSWORD='{MASK}' ./run"
    assert redactor.text(f"tool --password '{secret}' run") == f"tool --password '{MASK}' run"


# --- cost -----------------------------------------------------------------------------------------------

MEGABYTE = ["a", "=", '"', "eyJ", "password=", "://"]
HOSTILE = [
    *(
        "'",
        "password: ",
        "://a:",
        "sql",
        "postgres://a:",
        "token:",
        "token={",
        "password=[masked]",
        'password="',
    ),
    *('password=\\"', "${pass", "${token:-", "$1", "sk-", "-----BEGIN PRIVATE KEY-----", "mysql ", 'mysql "'),
    *(
        "curl -u=",
        "docker login ",
        "echo a | ",
        "?sig=",
        "cookie: a ",
        "cookie: a=[masked] ",
        "x passphrase: b ",
    ),
    *("authorization: bearer ", "config set a.token ", "name: token value", "token=a,", "token=a("),
]
# Names without end, and nothing between them that no name reaches over.
NAMES = [
    "key",
    "key ",
    "key key: ",
    "api key ",
    "--key ",
    "key: key | ",
    "key, ",
    "key>",
    "x: Token = ",
    "pat_",
]
RUNS = [" ", "=", "a", "\\", "pass", "-"]
BEGINNINGS = ["auth", "bearer", "token = a", "echo a |", "curl -u", "${", "cookie: ;", "--token"]


@pytest.mark.parametrize(
    "text",
    [
        *(piece * (1_000_000 // len(piece)) for piece in MEGABYTE),
        *(piece * (400_000 // len(piece)) for piece in [*HOSTILE, *NAMES]),
        *(start + run * (400_000 // len(run)) for start in BEGINNINGS for run in RUNS),
    ],
    ids=lambda text: text[:20],
)
def test_hostile_text_costs_linear_time(text):
    """Each takes a fraction of a second; quadratic time runs into the limit of every test."""
    redactor.text(text)


def test_a_usual_call_costs_next_to_nothing():
    """The bound, in functions called, only catches a lost pre-check."""
    call, calls = {"command": "git status --short && npm test"}, []
    redactor.value(call)
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, what: calls.append(what) if event in ("call", "c_call") else None)
    try:
        redactor.value(call)
    finally:
        sys.setprofile(before)
    assert len(calls) <= 40


@pytest.mark.invariant("`at` never goes back, or a text of many names would cost quadratic time")
def test_of_many_names_in_a_row_each_value_is_masked_once():
    """Reading never goes back behind a value it has masked."""
    text = "password: Hunter2aa token=Hunter3bb, api_key: 'Hunter4cc' " * 3
    masked = f"password: {MASK} token={MASK}, api_key: '{MASK}' " * 3
    assert redactor.text(text) == masked


def test_every_pass_runs_where_one_of_its_hints_is_found_and_in_its_turn():
    made = Redactor(Masking(keys=("mein-schlüssel", "Z"), patterns=("tick",)))
    ran = []
    hints = [each for each, _ in made._passes]
    made._passes = tuple((each, partial(noted, ran, number)) for number, each in enumerate(hints))
    always = [number for number, each in enumerate(hints) if each == ("",)]
    for number, each in enumerate(hints):
        for hint in each:
            ran.clear()
            made.text(f"é {hint.upper()} é {number}")
            assert number in ran and ran == sorted({*ran})
    ran.clear()
    made.text("é")
    assert ran == always and len(always) == 2
    made.text("PAſſ ſecret ıdentıfıed")
    assert ran == always * 2, "a pass runs for hints in lower case, not for letters that look like theirs"


def test_what_one_pass_masks_moves_nothing_for_the_next():
    url, long = f"https://me:{'tiger1' * 9}@db", " and so on" * 60
    for more in ("", long):
        text = f"{url} token: 'abc123x' {url} mysql -phunter2x{more}"
        masked = f"https://me:{MASK}@db"
        assert redactor.text(text) == f"{masked} token: '{MASK}' {masked} mysql -p{MASK}{more}"


def noted(ran, number, seen):
    ran.append(number)
    return seen.text


def test_no_shape_is_shorter_than_a_run_that_is_looked_at():
    shortest = re._parser.parse(SHAPE).getwidth()[0]
    assert f"{{{shortest},}}" in SHAPE_RUN.pattern


def shapes(text):
    return _shapes(redactor._words.look(text))


NOISE = st.text(alphabet="aZ9_.~+/=:$-'\"\\ \n,;{}éK\u212a", max_size=20)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(NOISE, st.sampled_from(SHAPES), st.integers(0, 80)), min_size=1, max_size=4))
def test_looking_at_long_runs_alone_finds_every_shape(parts):
    """Whole tokens, cut ones and such that touch: what is masked is what one look at the whole text masks."""
    text = "".join(noise + "".join(row["parts"])[:cut] for noise, row, cut in parts)
    assert shapes(text) == re.sub(SHAPE, MASK, text)


@pytest.mark.parametrize("row", SHAPES, ids=row_id)
def test_a_shape_is_found_wherever_it_stands(row):
    secret = "".join(row["parts"])
    for around in ("", " ", '"', "'", "=", ":", "/", "(", "é", "\n", ",", "-", "x", "$"):
        for text in (around + secret + around, f"{around * 20}{secret}", f"a{around}{secret}{around}b"):
            assert shapes(text) == re.sub(SHAPE, MASK, text)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(["MTk4NjIyNDgzNDcxOTI1MjQ4", ".Cl2FMQ", "SK", "0123456789abcdef"]) | NOISE))
def test_shapes_without_a_prefix_are_found_wherever_they_stand(parts):
    text = "".join(parts) + "".join(reversed(parts)) + "Nz." * 9
    assert _bare_shapes(redactor._words.look(text)) == BARE_SHAPE.sub(MASK, text)


def test_shapes_without_a_prefix_are_found():
    discord = "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"
    twilio = "SK" + "0123456789abcdef" * 2
    for secret in (discord, twilio):
        assert _bare_shapes(redactor._words.look(f"a {secret} b")) == f"a {MASK} b"
