"""What is masked in all of a call once it was found in it, and what is not."""

import pytest
from ground import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkrein.call import Category, Reason, Risk, Verdict, canonical, tool_call
from checkrein.ledger.call_secrets import TOO_MANY, CallSecrets, secrets_between
from checkrein.ledger.events import decided
from checkrein.ledger.redact import MASK, Redactor
from checkrein.ledger.secrets import PROGRAMS

redactor = Redactor()


def shell(command, **more):
    return redactor.find({"command": command, **more})


def recorded(arguments, *reasons, most=65_536):
    risk = Risk(category=Category.high, reasons=tuple(map(Reason, reasons)))
    verdict = Verdict(decision="blocked", stage="floor", risk=risk, reasons=risk.reasons)
    call = tool_call({"tool": "Bash", "arguments": arguments})
    return decided(call, verdict, redactor, most)


def test_a_secret_is_masked_everywhere_in_its_call():
    masked, secrets = shell("docker login -p hunter2secret r.io; echo hunter2secret", note="hunter2secret.")
    assert masked == {"command": f"docker login -p {MASK} r.io; echo {MASK}", "note": f"{MASK}."}
    assert secrets.values == {"hunter2secret"}


def test_a_call_without_secrets_has_none():
    masked, secrets = shell("git status")
    assert masked == {"command": "git status"}
    assert not secrets and secrets.text("any hunter2secret") == "any hunter2secret"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("sshpass -p abc ssh host", "talks to abc"),  # Too short to be told from other words.
        ("docker login -p production r.io", "talks to production"),
        ("docker login -p Main r.io", "on branch main"),
        ("mysql -psecret db", "secret files"),
    ],
)
def test_short_and_common_words_are_masked_only_where_they_were_found(command, text):
    masked, secrets = shell(command)
    assert MASK in masked["command"]
    assert secrets.quoted(text) == text


@pytest.mark.invariant("a program or a host keeps its name, though a call passes the same word as a secret")
@pytest.mark.parametrize("word", ["evil.example.com", "evil.io", "10.0.0.7", "curl", "rsync", "sshpass"])
def test_no_program_and_no_host_is_hidden_by_passing_it_as_a_secret(word):
    masked, secrets = shell(f"PASSWORD={word} ./x; {word} y")
    assert masked["command"] == f"PASSWORD={MASK} ./x; {word} y"
    assert secrets.quoted(f"`x` talks to {word}") == f"`x` talks to {word}"


def test_letters_alone_are_masked_as_a_word_only():
    secrets = CallSecrets(["swordfish"])
    assert secrets.text("swordfishes swordfish -pswordfish") == f"swordfishes {MASK} -p{MASK}"
    assert CallSecrets(["sw0rdfish"]).text("xsw0rdfishx") == f"x{MASK}x"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("docker login -p 'hunter 2' r.io", "`docker login hunter 2` talks"),
        (r"docker login -p hun\ ter2 r.io", "`docker login hun ter2` talks"),
        ("docker login -p hun'ter'2x r.io", "`docker login hunter2x` talks"),
        ("docker login -p $'hunter2x' r.io", "`docker login hunter2x` talks"),
        ("curl https://me:p%40ssw0rd@a.example", "the password p@ssw0rd"),
    ],
)
def test_a_secret_is_masked_as_a_shell_and_a_url_read_it(command, reason):
    text = str(recorded({"command": command}, reason)["reasons"])
    assert MASK in text
    assert not any(piece in text for piece in ("hunter", "ter2", "p@ss"))


def test_the_beginning_of_a_secret_is_masked_where_a_quotation_was_cut_off():
    secret = "Ab1" * 60
    found = recorded(
        {"command": f"docker login -p {secret}"}, f"`docker login -p {secret[:50]}…` talks (high)"
    )
    assert found["reasons"] == [f"`docker login -p {MASK}` talks (high)"]
    assert CallSecrets([secret]).quoted(f"its SQL: {secret[:30]} (medium)") == f"its SQL: {MASK} (medium)"


def test_what_is_not_kept_is_looked_at_for_secrets_all_the_same():
    padded = {"command": f"echo {'x ' * 5_000}; docker login -p hunter2secret"}
    assert "hunter2" not in str(recorded(padded, "`docker login hunter2secret` talks", most=100))


def test_numbers_under_a_secret_name_are_masked_elsewhere_too():
    masked, _ = redactor.find({"pin_code_token": 48151623, "body": "the code is 48151623", "n": 48151623})
    assert masked == {"pin_code_token": MASK, "body": f"the code is {MASK}", "n": MASK}


@pytest.mark.invariant("what holds more secrets than can be looked for is masked as a whole")
def test_a_text_with_too_many_secrets_is_masked_as_a_whole():
    secrets = CallSecrets(f"Zq{number}xx" for number in range(30_000))
    assert secrets.text("x" * 10_000) == TOO_MANY
    assert secrets.text("say Zq17xx") == f"say {MASK}"


WORDS = st.text("abcXYZ019!#%^*+=_-.:/@\\ \"'$é\n", min_size=1, max_size=24)


@settings(max_examples=examples(300))
@given(st.lists(WORDS, max_size=4), WORDS, WORDS)
def test_masking_never_raises_and_leaves_no_distinct_value(values, before, after):
    secrets = CallSecrets(values)
    for value in values:
        text = secrets.quoted(f"{before} {value} {after}")
        assert secrets.text(text) == secrets.text(secrets.text(text))
        if len(value) >= 8 and value.isalnum() and not value.isalpha() and not value.isdigit():
            assert value not in text


@settings(max_examples=examples(300))
@given(st.text("abcXYZ019_.+=", min_size=8, max_size=40), st.sampled_from(sorted(PROGRAMS)), WORDS)
def test_what_is_masked_in_the_arguments_is_in_no_reason(secret, program, noise):
    assume(any(map(str.isdigit, secret)) and any(map(str.isalpha, secret)))
    command = f"{program} login -u me -p {secret} {noise}"
    data = recorded({"command": command}, f"`{command[:60]}…`: {program} talks to {secret} (high)")
    if secret not in data["input"]["command"] and f"-p {MASK}" in data["input"]["command"]:
        assert secret not in canonical(data["reasons"]).decode()


@given(WORDS, WORDS, WORDS)
def test_what_was_masked_is_found_again(before, secret, after):
    assume(MASK not in before + secret + after)
    assert [*secrets_between(before + secret + after, before + MASK + after)] == [secret]


def test_hostile_values_cost_linear_time():
    """Each takes a fraction of a second; quadratic time runs into the limit of every test."""
    shell(" ".join(f"A{number}_TOKEN=Zq{number}xx" for number in range(8_000)))
    shell("docker login -p " + "a" * 200_000 + " " + "a" * 200_000)
    CallSecrets(["a1" * 100_000]).quoted("a1" * 100_000 + "…")


def test_half_a_letter_in_a_secret_raises_nothing():
    masked, secrets = redactor.find({"password": "hunter2\ud800secret", "note": "hunter2\ud800secret"})
    assert masked == {"password": MASK, "note": MASK}
    assert secrets.quoted("it is hunter2\ud800secret") == f"it is {MASK}"
    assert MASK in str(
        recorded({"command": "mysql -phunter2\ud800secret db"}, "mysql -phunter2\ud800secret db")
    )
