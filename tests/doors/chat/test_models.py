"""The table of models: the shipped limits, names as providers spell them, and a user's own file."""

import tomllib

import pytest

from checkrein.doors.chat.models import ASSUMED, Entry, Table, load, models_file, parsed, rendered, shipped
from checkrein.errors import ConfigError


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write(text):
        models_file().parent.mkdir(parents=True, exist_ok=True)
        models_file().write_text(text, encoding="utf-8")
        return load()

    return write


def limits(name, table=None):
    model = (table or Table(shipped())).model(name)
    return model.known_as, model.input, model.output


@pytest.mark.parametrize(
    ("name", "input", "output"),
    [
        ("GPT-4o", 128_000, 16_384),
        ("Claude 3.5 Sonnet", 200_000, 8_192),
        ("Gemini 1.5 Pro", 1_000_000, 8_192),
        ("gpt-4o", 128_000, 16_384),
        ("claude-3-5-sonnet-20241022", 200_000, 8_192),
        ("gemini-1.5-pro", 1_000_000, 8_192),
    ],
)
def test_the_limits_everyone_expects(name, input, output):
    model = Table(shipped()).model(name)
    assert (model.input, model.output, model.known, model.note) == (input, output, True, "")


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("chatgpt-4o-latest", "chatgpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-1106-preview", "gpt-4-1106"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("o3-mini", "o3-mini"),
        ("openai/gpt-4o", "gpt-4o"),
        ("openai:gpt-4o", "gpt-4o"),
        ("google-gla:gemini-2.5-pro", "gemini-2.5-pro"),
        ("models/gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
        ("anthropic/claude-3.5-sonnet", "claude-3.5-sonnet"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-opus-4-6", "claude-opus-4-6"),
        ("claude-3-opus-20240229", "claude-3-opus"),
        ("llama3.1:8b", "llama3.1"),
        ("llama3:latest", "llama3"),
    ],
)
def test_names_as_providers_spell_them(name, known_as):
    model = Table(shipped()).model(name)
    assert (model.name, model.known_as, model.note) == (name, known_as, "")


@pytest.mark.parametrize(
    "name", ["", "my-finetune", "gpt", "gpt-4omni", "gpt-4.9", "gpt-40", "o11", "x" * 10_000]
)
def test_an_unknown_model_says_so_and_uses_the_stated_default(name):
    model = Table(shipped()).model(name)
    assert not model.known
    assert (model.input, model.output) == (ASSUMED.input, ASSUMED.output) == (128_000, 4_096)
    assert "not in the table of models" in model.note
    assert "128,000 tokens in and 4,096 out are assumed" in model.note
    assert len(model.note) < 300


def test_a_variant_nobody_told_us_of_says_whose_limits_it_is_given():
    model = Table(shipped()).model("gpt-4o-turbo-ultra")
    assert model.known_as == "gpt-4o"
    assert "the limits of `gpt-4o` are assumed" in model.note


def test_encodings():
    table = Table(shipped())
    assert table.model("gpt-4-turbo").encoding == "cl100k"
    assert table.model("gpt-3.5-turbo-0125").encoding == "cl100k"
    assert (table.model("gpt-4o").encoding, table.model("gpt-4o").approximate) == ("o200k", False)
    assert table.model("claude-opus-5-5").approximate
    assert table.model("who-knows").approximate


def test_no_shipped_model_hides_what_the_user_says_of_all():
    for entry in shipped().values():
        assert entry.threshold is None
        assert entry.retention_tokens is None
        assert 1 <= entry.output <= entry.input


def test_no_two_rows_claim_one_name():
    rows = tomllib.loads((models_toml()).read_text(encoding="utf-8"))["models"]
    names = [name for key, row in rows.items() for name in (key, *row.get("aliases", ()))]
    assert len(names) == len(set(names))


def models_toml():
    from checkrein.doors.chat import models

    return models._SHIPPED


def test_a_users_file_adds_and_changes_models(own):
    table = own(
        '[models."our-deployment"]\ninput = 32000\noutput = 2000\n'
        'encoding = "cl100k_base"\naliases = ["Prod GPT"]\n'
        '[models."gpt-4o"]\ninput = 64000\nthreshold = 0.8\nretention_tokens = 500\n'
    )
    assert table.fault == ""
    assert limits("our-deployment-2", table) == ("our-deployment", 32_000, 2_000)
    assert table.model("prod gpt").encoding == "cl100k"
    changed = table.model("gpt-4o-2024-08-06")
    assert (changed.input, changed.output, changed.threshold, changed.retention_tokens) == (
        64_000,
        16_384,
        0.8,
        500,
    )
    assert limits("gpt-4o-mini", table) == ("gpt-4o-mini", 128_000, 16_384)


def test_without_a_users_file_the_shipped_table_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load() == Table(shipped())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[models", "not valid TOML"),
        ("[model.x]\ninput = 1\n", "Did you mean `models`?"),
        ("models = 3\n", "must be a table"),
        ("[models]\nx = 3\n", "must be a table"),
        ("[models.x]\ninput = 1000\n", '`models."x".output`'),
        ("[models.x]\ninput = 0\noutput = 5\n", "must be a whole number"),
        ("[models.x]\ninput = true\noutput = 5\n", "must be a whole number"),
        ("[models.x]\ninput = 1.5\noutput = 5\n", "must be a whole number"),
        ("[models.x]\ninput = 9\noutput = 5\noutputs = 5\n", "Did you mean `output`?"),
        ('[models.x]\ninput = 9\noutput = 5\nencoding = "p50k"\n', "Use o200k or cl100k"),
        ("[models.x]\ninput = 9\noutput = 5\nthreshold = 0.5\n", "70 to 100 percent"),
        ("[models.x]\ninput = 9\noutput = 5\nthreshold = nan\n", "70 to 100 percent"),
        ("[models.x]\ninput = 9\noutput = 5\naliases = 3\n", "Expected `array`"),
        ("[models.x]\ninput = 9\noutput = 5\nretention_tokens = -1\n", "must be a whole number"),
    ],
)
def test_a_file_that_cannot_be_right_is_left_out_and_told(own, text, told):
    table = own(text)
    assert told in table.fault
    assert "models.toml" in table.fault
    assert table.entries == shipped()


def test_a_rows_name_wins_over_another_rows_alias():
    document = tomllib.loads(
        '[models.a]\ninput = 1\noutput = 1\n[models.b]\ninput = 2\noutput = 2\naliases = ["a", "c"]\n'
    )
    found = parsed(document, "x")
    assert (found["a"].input, found["c"].input) == (1, 2)


def test_what_is_rendered_reads_back():
    entries = {
        'my "odd" model': Entry(
            input=10, output=5, encoding="cl100k", approximate=True, aliases=("x\ty", "z")
        ),
        "plain": Entry(input=9, output=3, threshold=0.75, retention_tokens=0),
    }
    found = parsed(tomllib.loads(rendered(entries)), "x")
    assert found['my-"odd"-model'] == entries['my "odd" model']
    assert found["plain"] == entries["plain"]


def test_errors_are_the_users_to_read():
    with pytest.raises(ConfigError) as caught:
        parsed({"models": {"x": {"input": 5, "output": -1}}}, "here")
    assert str(caught.value).startswith("here: ")
