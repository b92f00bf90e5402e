import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.console.forms import fields
from checkrein.errors import InputError


def test_fields_of_a_form():
    found = fields(b"a=1&a=+2+&b=x%0D%0Ay&c=")
    assert found.text("a") == "2"
    assert found.all("a") == ["1", " 2 "]
    assert found.text("b") == "x\ny"
    assert found.text("c", "other") == ""
    assert found.text("d", "other") == "other"
    assert found.number("a") == 2
    assert found.number("d") is None
    assert found.json("d") is None


@given(st.binary())
def test_any_bytes_are_fields(content):
    for values in fields(content).values.values():
        assert all(isinstance(value, str) for value in values)


@pytest.mark.parametrize("text", ["x", "1.5", "9" * 16, "--1", "²"])
def test_what_is_no_number_is_refused(text):
    from urllib.parse import quote

    with pytest.raises(InputError, match="whole number"):
        fields(f"n={quote(text)}".encode()).number("n")


@pytest.mark.parametrize("text", ["{", "%ff", '"%5Cud800"', "[" * 5000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(InputError, match="not JSON"):
        fields(f"j={text}".encode()).json("j")


def test_too_many_fields_are_refused():
    with pytest.raises(InputError, match="too many"):
        fields(b"a=1&" * 3000)
