"""Arguments as they are judged, and back again as the tool takes them."""

import dataclasses
import datetime
import enum
import pathlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.library.arguments import Shape, converted, described, plain
from checkrein.errors import InputError


class Colour(enum.Enum):
    red = "red"


class Point(msgspec.Struct):
    x: int


@dataclasses.dataclass
class Line:
    start: int


class Model:
    """Looks like a pydantic model."""

    def __init__(self, n):
        self.n = n

    def model_dump(self, mode):
        assert mode == "json"
        return {"n": self.n}

    @classmethod
    def model_validate(cls, data):
        if not isinstance(data.get("n"), int):
            raise ValueError("n is a number")
        return cls(data["n"])


class Rude:
    def __repr__(self):
        raise OSError


def test_every_argument_by_name_with_its_default():
    def tool(a, /, b, *rest, c=3, **more): ...

    shape = Shape(tool)
    assert shape.arguments((1, 2, 8, 9), {"d": 4}) == {"a": 1, "b": 2, "rest": (8, 9), "c": 3, "d": 4}
    with pytest.raises(TypeError):
        shape.arguments((), {})


def test_no_argument_is_judged_in_the_place_of_another():
    def tool(a, /, **more): ...

    with pytest.raises(InputError, match="named twice"):
        Shape(tool).arguments((1,), {"a": 2})


def test_what_is_hidden_is_no_part_of_the_call_and_stays_as_it_was():
    def tool(context, n, log=None): ...

    shape = Shape(tool, ("context", "log"))
    assert shape.arguments(("secret", 1), {"log": "l"}) == {"n": 1}
    args, kwargs = shape.call({"n": 2}, ("secret", 1), {"log": "l"})
    assert (args, kwargs) == ((), {"context": "secret", "n": 2, "log": "l"})
    with pytest.raises(InputError, match="no parameter nobody"):
        Shape(tool, ("nobody",))


def test_a_call_is_rebuilt_from_its_arguments():
    def tool(a, /, b, *rest, c=3, **more):
        return a, b, rest, c, more

    shape = Shape(tool)
    args, kwargs = shape.call({"a": 1, "b": 2, "rest": [8, 9], "c": 5, "d": 4})
    assert tool(*args, **kwargs) == (1, 2, (8, 9), 5, {"d": 4})


@pytest.mark.parametrize("arguments", [{}, {"n": 1, "m": 2}, {"n": "many"}])
def test_what_does_not_fit_is_refused(arguments):
    def tool(n: int): ...

    with pytest.raises(InputError):
        Shape(tool).call(arguments)


def test_values_become_what_their_parameter_says():
    assert converted("red", Colour, "x") is Colour.red
    assert converted({"x": 1}, Point, "x") == Point(1)
    assert converted({"start": 1}, Line, "x") == Line(1)
    assert converted("a/b", pathlib.Path, "x") == pathlib.Path("a/b")
    assert converted({"n": 1}, Model, "x").n == 1
    assert converted("2027-01-01", datetime.date, "x") == datetime.date(2027, 1, 1)
    # Two shapes nothing tells apart: the tool checks for itself.
    assert converted({"x": 1}, Point | Line, "x") == {"x": 1}
    for value, kind in ((1, str), ({"n": "x"}, Model), ("blue", Colour), (3, Rude)):
        with pytest.raises(InputError, match="does not fit"):
            converted(value, kind, "x")


def test_annotations_nobody_can_read_are_left_alone():
    def tool(n: "Nowhere"): ...  # noqa: F821

    assert Shape(tool).call({"n": 1}) == ((), {"n": 1})


def test_values_in_the_words_of_json():
    opaque = []
    value = {
        "point": Point(1),
        "line": Line(2),
        "model": Model(3),
        "path": pathlib.Path("/a"),
        "colours": {"b", "a"},
        "day": datetime.date(2027, 1, 1),
        "pair": (1, None),
        3: True,
    }
    assert plain(value, opaque) == {
        "point": {"x": 1},
        "line": {"start": 2},
        "model": {"n": 3},
        "path": "/a",
        "colours": ["a", "b"],
        "day": "2027-01-01",
        "pair": [1, None],
        "3": True,
    }
    assert opaque == []


def test_what_json_cannot_hold_is_described_and_named():
    opaque = []
    found = plain({"a": {"b": [print]}, "c": Rude(), object: 1}, opaque)
    assert found["a"]["b"] == ["<built-in function print>"] and found["c"] == "<Rude>"
    assert opaque == ["a.b[]", "c", ""]
    assert len(described("x" * 5000)) == 1001


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_json_stays_as_it_is(value):
    opaque = []
    assert plain(value, opaque) == value and opaque == []
