import ast

import pytest

from checkrein.execute.preview_python import Script
from checkrein.execute.preview_python_names import walked
from checkrein.execute.preview_scopes import Overrun, Work


def declared(text):
    """The names of every scope, outermost first."""
    placed = Script(text.encode(), None, Work(100_000, 10.0)).places_of
    scopes = {id(place.scope): place.scope for place in placed.values()}
    return [sorted(scope.names) for scope in scopes.values() if scope.names]


def test_every_way_to_bind_a_name():
    assert declared("a = b, (c, *d) = x; e: int = 1; f += 1\nfor g, h in x: pass\nwith x as i: pass") == [
        list("abcdefghi")
    ]
    assert declared("import a.b, c as d\nfrom x import e, f as g") == [list("adeg")]
    assert declared("try: x\nexcept E as a: x\nmatch x:\n  case [b, *c, {'k': d, **e}] as f: x") == [
        list("abcdef")
    ]
    assert declared("def f(a, /, b, *c, d=1, **e): pass\nclass g: h = 1") == [
        list("fg"),
        list("abcde"),
        ["h"],
    ]


def test_comprehensions_and_lambdas_hold_their_own_names():
    assert declared("[a for a in b]; {c: d for c, d in e}; lambda f: f") == [["a"], ["c", "d"], ["f"]]
    assert declared("[(y := x) for x in xs]") == [["y"], ["x"]]


def test_global_and_nonlocal_reach_outside():
    assert declared("def f():\n  global a\n  a = 1\n  b = 1\n  def g():\n    nonlocal b\n    b = 2") == [
        ["a", "f"],
        ["b", "g"],
    ]


def test_what_is_read_outside_a_function_stands_outside():
    placed = walked(ast.parse("@a\ndef f(x=b): c"), Work(1000, 10.0))
    top = next(iter(placed.values())).scope
    inside = {node.id: place.scope is not top for node, place in placed.items() if isinstance(node, ast.Name)}
    assert inside == {"a": False, "b": False, "c": True}


def test_walking_needs_no_depth_and_can_be_ended():
    deep = ast.parse("-" * 2500 + "1")
    assert len(walked(deep, Work(10_000, 10.0))) == 2503
    with pytest.raises(Overrun):
        walked(deep, Work(100, 10.0))
