"""Values cross to a real worker and back as they are; what a worker makes up is named or refused."""

import datetime

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.execute.python_graph import Cycle, Function, Graph, Module, Odd, Shown, values
from checkrein.execute.python_wire import BrokenFrameError, part, varint, whole
from checkrein.execute.sandbox import Answer, Ended, Limits, Paused
from scripts import TOOLS, run, with_engine

plain_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
single = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    plain_text,
)
json_values = st.recursive(
    single,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(plain_text, inner, max_size=5)),
    max_leaves=30,
)


def same(one, other):
    """Equal, down to which kind of number it is and the sign of nothing."""
    return repr(one) == repr(other)


def test_json_goes_through_a_script_unchanged_both_ways():
    """As an argument, as an answer and as a result, in a worker of its own for many."""
    some = []

    @settings(max_examples=examples(150), database=None)
    @given(json_values)
    def gather(value):
        some.append(value)

    gather()
    source = "x = await fs__read(path=1)\nwhile x != 'end':\n    x = await fs__read(path=x)"

    async def use(engine):
        session = await engine.open(TOOLS, Limits(calls=1000))
        step = await session.start(source)
        for value in [each for each in some if each != "end"]:
            step = await session.resume({step.wanted[0].id: Answer(value=value)})
            assert isinstance(step, Paused), (value, step)
            assert same(step.wanted[0].arguments, {"path": value})
        return await session.resume({step.wanted[0].id: Answer(value="end")})

    assert isinstance(with_engine(use), Ended)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("(1, (2,))", [1, [2]]),
        ("{3}", [3]),
        ("frozenset([1])", [1]),
        ("2**64 - 1", 2**64 - 1),
        ("-2**63", -(2**63)),
        ("import datetime\ndatetime.date(2026, 1, 2)", "2026-01-02"),
        ("import datetime\ndatetime.datetime(2026, 1, 2, 3, 4, 5, 6)", "2026-01-02T03:04:05.000006"),
        (
            "import datetime\nz = datetime.timezone(datetime.timedelta(hours=-2))\n"
            "datetime.datetime(2026, 1, 2, tzinfo=z)",
            "2026-01-02T00:00:00-02:00",
        ),
        ("import datetime\ndatetime.time(1, 2, 3)", "01:02:03"),
        ("import datetime\ndatetime.timedelta(days=-1, seconds=5)", "-1 day, 0:00:05"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(1)", {"x": 1}),
        ("from dataclasses import dataclass\n@dataclass\nclass type:\n    x: int\ntype(1)", {"x": 1}),
        ("range(3)", "range(0, 3)"),
        ("codemode.fs__read", "codemode.fs__read"),
        ("['[...]', {'a': '{...}'}]", ["[...]", {"a": "{...}"}]),
        ("x = [1]\n[x, x]", [[1], [1]]),
    ],
)
def test_a_result_is_what_the_script_came_to(source, value):
    assert run(source) == Ended(value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = [1]\nx.append(x)\nx", "holds itself"),
        ("b'x'", "a bytes"),
        ("len", "a len"),
        ("int", "a type"),
        ("ValueError('x')", "a ValueError"),
        ("class A:\n    x = 1\nA()", "a A"),
        ("codemode", "a module"),
        ("1j", "a complex"),
        ("2**64", "beyond 64 bits"),
        ("{(1, 2): 3}", "not text but a tuple"),
    ],
)
def test_what_is_no_json_is_named(source, said):
    failed = run(source)
    assert failed.kind == "error" and said in failed.message


def nodes(*bodies):
    return b"".join(part(2, body) for body in bodies)


DEEP = [part(12, part(1, varint(n))) for n in range(50_000)]
ZERO = whole(5, 0)


@pytest.mark.invariant("nothing a script nested is hashed here")
def test_what_is_nested_without_end_is_read_and_never_hashed():
    made = values(nodes(ZERO, *DEEP, part(14, part(1, whole(1, 50_000) + whole(2, 0)))))
    assert [type(key) for key in made[-1]] == [Odd]
    assert values(nodes(ZERO, *DEEP, part(15, part(1, varint(50_000)))))[-1].name == "set"


@pytest.mark.parametrize(
    "sent",
    [
        nodes(part(11, part(1, b"\0"))),
        nodes(ZERO, part(11, part(1, b"\1"))),
        nodes(ZERO, part(14, part(1, whole(1, 0) + whole(2, 7)))),
        nodes(ZERO, part(24, whole(1, 0))),
        nodes(part(23, whole(4, 1)), part(24, whole(1, 0)), part(24, whole(1, 1))),
        nodes(b""),
        nodes(ZERO + ZERO),
        nodes(part(5, b"a")),
        nodes(whole(8, 1)),
        nodes(part(8, b"\xff")),
        nodes(part(17, whole(1, 2026) + whole(2, 13) + whole(3, 1))),
        nodes(part(19, whole(1, 2026))),
        nodes(whole(17, 1)),
        nodes(part(6, whole(2, 5))),
        nodes(part(20, whole(1, 2**62))),
        nodes(whole(7, 1)),
        whole(2, 1),
        b"\x12",
    ],
)
def test_values_that_cannot_be_are_refused(sent):
    with pytest.raises(BrokenFrameError):
        values(sent)


def test_what_is_not_known_here_has_a_name_and_no_value():
    assert [each.name for each in values(nodes(part(99, b""), part(1), part(31, b"")))] == [
        "value",
        "ellipsis",
        "complex",
    ]
    assert values(nodes(part(30, b"[...]"), part(29, b"<x>"))) == [Cycle(), Shown("<x>")]


@given(st.binary(max_size=300))
def test_whatever_a_stranger_sends_is_values_or_refused(sent):
    try:
        values(sent)
    except BrokenFrameError:
        return


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_whatever_nodes_a_stranger_sends_are_values_or_refused(bodies):
    try:
        values(nodes(ZERO, *bodies))
    except BrokenFrameError:
        return


def test_days_are_days():
    day = part(17, whole(1, 2026) + whole(2, 1) + whole(3, 2))
    assert values(nodes(day)) == [datetime.date(2026, 1, 2)]


def test_only_json_and_what_is_ours_is_given_to_a_script():
    graph = Graph()
    assert graph.add(Module("m", b"\0" * 16, {"f": Function("m.f")})) == 2
    with pytest.raises(TypeError):
        graph.add(object())
    with pytest.raises(TypeError):
        graph.add({"a": {1}})
