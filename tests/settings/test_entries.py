"""A JSON file of entries: what it takes, what it refuses, and that what others wrote stays in it."""

import json
import stat

import msgspec
import pytest

from checkrein.errors import ConfigError
from checkrein.settings import entries
from checkrein.settings.secrets import environment_file, secrets_file


class Spec(msgspec.Struct):
    name: str
    words: tuple[str, ...] = ()
    on: bool = True


@pytest.fixture
def path(tmp_path):
    return tmp_path / "entries.json"


def test_no_file_holds_nothing(path):
    assert entries.text_of(path) == ""
    assert entries.document("", "x") == entries.document(" \n", "x") == {}


@pytest.mark.invariant(
    "what another user could have written starts no program and says not where our keys go"
)
def test_what_another_user_can_write_is_not_read(path):
    path.write_text("{}")
    path.chmod(0o602)
    with pytest.raises(ConfigError, match=r"can be written by other users.*chmod 600"):
        entries.text_of(path)


def test_what_is_no_text_is_refused(path):
    path.write_bytes(b"\xff{}")
    with pytest.raises(ConfigError, match="UTF-8") as found:
        entries.text_of(path)
    assert str(path) in str(found.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{\n\n  oops", "here, line 3"),
        ("[]", "is not an object"),
        ('{"a": 1, "a": 2}', "names 'a' twice"),
        (
            '{"a": {"\\u0007' + "b" * 99 + '": 1, "\\u0007' + "b" * 99 + '": 2}}',
            r"names '\?bbb.*\.\.\.' twice",
        ),
        ('{"a": Infinity}', "holds Infinity"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(text, why):
    with pytest.raises(ConfigError, match=why) as found:
        entries.document(text, "here")
    assert "here" in found.value.source


def test_a_key_that_is_nearly_right_is_taken_for_a_slip():
    assert entries.entries({"servers": {"a": {}}}, "servers", "here", likeness=0.7) == {"a": {}}
    assert entries.entries({"note": {}}, "servers", "here", likeness=0.7) == {}
    with pytest.raises(ConfigError, match=r"here: `server`.*Did you mean `servers`"):
        entries.entries({"server": {}}, "servers", "here", likeness=0.7)
    with pytest.raises(ConfigError, match=r'must be an object\. Write {"servers": {"name": {\.\.\.}}}'):
        entries.entries({"servers": []}, "servers", "here", likeness=0.7)


def test_only_what_is_not_as_usual_is_written():
    plain = Spec("a")
    assert entries.unusual(plain, plain, ("words", "on")) == {}
    assert entries.unusual(Spec("a", ("x", "y"), on=False), plain, ("words", "on")) == {
        "words": ["x", "y"],
        "on": False,
    }
    assert entries.unknown({"words": [], "x-mine": 1}, ("words", "on")) == {"x-mine": 1}


def test_a_file_is_written_for_its_owner_alone(path):
    entries.write(path, {"é": 1})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_names_that_differ_in_case_only_are_twins():
    entries.no_twin("a", ["a", "b"])
    with pytest.raises(ConfigError, match="in case only"):
        entries.no_twin("a", ["a", "A"])


def test_a_stamp_is_another_with_each_file_an_entry_is_made_of(path):
    seen = {entries.stamp(path)}
    for count, each in enumerate((path, environment_file(), secrets_file()), 2):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text("{}")
        seen.add(entries.stamp(path))
        assert len(seen) == count
        assert entries.stamp(path) in seen
