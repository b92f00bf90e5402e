from checkrein.execute.preview_scopes import Work
from checkrein.execute.preview_script import Script


def script(text):
    return Script(text.encode(), Work(100_000, 10.0))


def declared(text):
    """The names of every scope, outermost first."""
    scopes = {id(node.inner): node.inner for node in script(text).nodes}
    return [sorted(scope.names) for scope in scopes.values() if scope.names]


def test_every_way_to_declare_a_name():
    assert declared("var a; let b = 1, [c, , ...d] = x; const { e, f: g, h = 1, ...i } = x") == [
        list("abcdeghi")
    ]
    assert declared("function f(a, { b }, [c] = [], ...d) {}") == [["f"], list("abcd")]
    assert declared("class A {} enum B {} import c, { d as e, f } from 'x'; import * as g from 'x'") == [
        list("ABcefg")
    ]
    assert declared("(function f(a) {}); b => b") == [["a", "f"], ["b"]]


def test_blocks_hold_their_own_names_and_var_leaves_them():
    assert declared("{ let a; var b; { const c = 1 } }") == [["b"], ["a"], ["c"]]
    assert declared("for (const a of b) { let c } try {} catch (d) {}") == [["a"], ["c"], ["d"]]


def test_a_name_nobody_declared_becomes_global():
    assert declared("function f() { a = 1 }") == [["a", "f"]]
    assert declared("codemode = 1") == []


def test_declared_for_the_types_only_is_not_declared():
    assert declared("declare const a: any; type b = 1; interface c {}; function d(): void; let e") == [["e"]]
