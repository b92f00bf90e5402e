import pytest

from checkrein.ledger.secrets import MASK, is_plain, masked_value, words_of


@pytest.mark.parametrize("name", ["DB-Password", "dbPassword", "DB_PASSWORD", "db.password", "DbPassword"])
def test_a_name_has_one_spelling(name):
    assert words_of(name) == "db_password"


@pytest.mark.parametrize(
    "value",
    ["$TOKEN", "${TOKEN:-}", "$(cat f)", "true", "null", "str", "./key.pem", "<token>", "{{ token }}", "12"],
)
def test_references_words_and_templates_are_no_secrets(value):
    assert is_plain(value)


@pytest.mark.parametrize("value", ["hunter2", "correct horse battery", "s3cr3t!", "abcdef0123456789"])
def test_anything_else_might_be_one(value):
    assert not is_plain(value)


def test_only_the_secret_part_of_a_value_goes():
    assert masked_value("Bearer abc123def456", "authorization") == f"Bearer {MASK}"
    assert masked_value("sid=abc123; theme=dark", "cookie") == f"sid={MASK}; theme={MASK}"
    assert masked_value("$TOKEN", "token") == "$TOKEN"
    assert masked_value("", "token") == ""
