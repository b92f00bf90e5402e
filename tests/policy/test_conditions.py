import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.call import ToolCall
from checkrein.errors import RuleError
from checkrein.policy.conditions import OPERAND, OPERAND_WORDS, TESTS, Context, conditions, holds, parse_path


def ask(arguments, test, wanted, *, path="x", every=True, resolve=None, **call):
    (condition,) = conditions([{"path": path, test: wanted}])
    return holds(condition, Context(ToolCall(tool="t", arguments=arguments, **call), resolve), every=every)[0]


PLAIN = [
    ("equals", 1, [1, 1.0], [True, 2, "1", None, [1]]),
    ("equals", True, [True], [1, "true", None]),
    ("equals", {"a": [1]}, [{"a": [1.0]}], [{"a": [True]}, {"a": [1], "b": 2}, {}]),
    ("equals", None, [None], [0, "", False, []]),
    ("one_of", ["a", 1], ["a", 1.0], ["b", True, ["a"]]),
    ("starts_with", "git ", ["git status"], ["git", " git ", "GIT x"]),
    ("contains", "rm", ["rm -rf", "a\nrm", ["rm"]], ["r m", ["rm -rf"], []]),
    ("contains", 5, [[5], [1, 5.0]], [[], ["5"]]),
    ("matches", "^ls$", ["ls"], ["ls\n", "ls\nrm", "ls\0; rm", " ls"]),
    ("matches", "rm", ["rm", "x rm"], ["r", ""]),
    ("gt", 5, [5.1, 6, 2**70, math.inf], [5, 4, -math.inf]),
    ("lt", 5, [4, -(2**70)], [5, 6]),
    ("exists", True, [None, 0, ""], []),
    ("exists", False, [], [None, 0, ""]),
]
UNTESTABLE = [
    ("starts_with", "a", [1, None, ["a"], {}]),
    ("contains", "a", [1, None, {}]),
    ("contains", 5, ["5", 5, {}]),
    ("matches", "a", [1, None, ["a"], "\ud800"]),
    ("gt", 5, ["6", True, None, math.nan, 10**400]),
    ("lt", 5, ["4", False, math.nan]),
    ("under", "/p", [1, None, ["/p/x"], "/p/\0", "~nobody_there/x", "file:///p/x", "FILE:/p/x", "s3://p/x"]),
    ("host_in", "a.b", [1, None, ["a.b"]]),
]


@pytest.mark.parametrize(("test", "wanted", "yes", "no"), PLAIN)
def test_a_test_says_yes_and_no(test, wanted, yes, no):
    assert [ask({"x": value}, test, wanted) for value in yes] == ["yes"] * len(yes)
    assert [ask({"x": value}, test, wanted) for value in no] == ["no"] * len(no)


@pytest.mark.parametrize(("test", "wanted", "values"), UNTESTABLE)
def test_what_cannot_be_told_is_unknown(test, wanted, values):
    for value in [*values, *([] if test == "exists" else [None])]:
        assert ask({"x": value}, test, wanted) == "unknown", value
    assert ask({}, test, wanted) == "unknown"


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_deep_nesting_is_no_way_out():
    assert ask({"x": nested(100_000)}, "equals", nested(20)) == "no"
    assert ask({"x": nested(20)}, "equals", nested(20)) == "yes"
    for test in ("equals", "contains", "one_of"):
        with pytest.raises(RuleError):
            conditions([{"path": "x", test: nested(100_000)}])


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("src/a", "yes"),
        ("./src", "yes"),
        ("src/../src/a", "yes"),
        ("/p/src/a", "yes"),
        ("//p//src///a", "yes"),
        ("///p/src", "yes"),
        ("/p/./src/", "yes"),
        ("src/../../p/src/a", "yes"),
        ("srcs/a", "no"),
        ("/p/srcs", "no"),
        ("src/..", "no"),
        ("src/../../etc/passwd", "no"),
        ("/p/src/../../etc", "no"),
        ("..", "no"),
        ("../src", "no"),
        ("/etc", "no"),
        ("~/x", "no"),
        ("", "no"),
        ("SRC/a", "no"),
        ("ｓｒｃ/a", "no"),
        ("src\u2215..\u2215..\u2215etc", "no"),
    ],
)
def test_under_compares_canonical_paths(value, answer):
    assert ask({"x": value}, "under", "src", project="/p") == answer
    assert ask({"x": value}, "under", ["/q", "/p/src"], project="/p", cwd="/p") == answer


def test_under_knows_the_home_and_the_working_folder(home):
    assert ask({"x": "~/a"}, "under", "~", project="/p") == "yes"
    assert ask({"x": "~/../x"}, "under", "~", project="/p") == "no"
    assert ask({"x": f"{home}/a"}, "under", "~") == "yes"
    assert ask({"x": "a"}, "under", "src", project="/p", cwd="/p/src") == "yes"
    assert ask({"x": "../a"}, "under", "src", project="/p", cwd="/p/src") == "no"
    assert ask({"x": "/anything"}, "under", "/") == "yes"


def test_under_without_a_project_tells_only_what_it_can():
    assert ask({"x": "src/a"}, "under", "src") == "yes"
    assert ask({"x": "../a"}, "under", ".") == "no"
    assert ask({"x": ".."}, "under", ".") == "no"
    assert ask({"x": "../a"}, "under", "..") == "no"
    assert ask({"x": "src/a"}, "under", "/p") == "unknown"
    assert ask({"x": "/p/src"}, "under", "src") == "unknown"


@pytest.fixture
def linked(tmp_path):
    """A project with a link out of it, and one inside it."""
    project, outside = tmp_path / "p", tmp_path / "outside" / "deep"
    (project / "src").mkdir(parents=True)
    outside.mkdir(parents=True)
    (project / "src" / "out").symlink_to(outside)
    (project / "src" / "in").symlink_to(project / "src")
    return str(project)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("src/a", "yes"),
        ("src/in/a", "yes"),
        ("src/new/../a", "yes"),
        ("src/out/a", "no"),
        ("src/out", "no"),
        ("src/out/../secret", "unknown"),
        ("src/out/../../p/src/a", "unknown"),
        ("src/in/../x", "unknown"),
        ("src/../../outside/x", "no"),
    ],
)
def test_under_follows_links_and_trusts_no_way_back_through_one(value, answer, linked):
    assert ask({"x": value}, "under", "src", project=linked, resolve=os.path.realpath) == answer


def test_a_folder_swapped_for_a_link_is_not_what_the_rule_meant(linked):
    inside = {"project": linked, "resolve": os.path.realpath}
    os.symlink("/etc", os.path.join(linked, "docs"))
    assert ask({"x": "docs/passwd"}, "under", "docs", **inside) == "unknown"
    assert ask({"x": "/etc/passwd"}, "under", f"{linked}/docs", **inside) == "unknown"
    assert ask({"x": "src/a"}, "under", "docs", **inside) == "no"
    assert ask({"x": "/etc/passwd"}, "under", "/etc", **inside) == "yes"


HOSTS = [
    ("https://api.good.com/x", "yes"),
    ("https://API.Good.COM./x", "yes"),
    ("api.good.com", "yes"),
    ("api.good.com:8443/x", "yes"),
    ("https://user:pw@api.good.com:1/", "yes"),
    ("git@api.good.com:a/b", "yes"),
    ("https://good.com", "no"),
    ("https://evilgood.com", "no"),
    ("https://api.good.com.evil.com", "no"),
    ("https://api.good.com@evil.com/", "no"),
    ("https://evil.com/?https://api.good.com", "no"),
    ("https://evil.com#@api.good.com", "no"),
    ("https://evil.com?@api.good.com", "no"),
    ("http://xn--good.com", "no"),
    ("https://evil.com\\@api.good.com", "unknown"),
    ("https://evil.com\t@api.good.com", "unknown"),
    ("https://api.good.com\n.evil.com", "unknown"),
    (" https://api.good.com", "unknown"),
    ("https://api.g\u043e\u043ed.com", "unknown"),
    ("https://api\u3002good.com", "unknown"),
    ("https://ev%69l.com", "unknown"),
    ("https:///api.good.com", "unknown"),
    ("http:/evil.com", "unknown"),
    ("http:evil.com", "unknown"),
    ("HTTPS:api.good.com", "unknown"),
    ("evil.com/://api.good.com", "unknown"),
    ("api.good.com:x@evil.com", "unknown"),
    ("//api.good.com", "unknown"),
    ("", "unknown"),
    ("https://", "unknown"),
    ("mailto:x@api.good.com", "unknown"),
    ("http://[::1", "unknown"),
    ("http://[api.good.com]", "unknown"),
]


@pytest.mark.parametrize(("value", "answer"), HOSTS)
def test_host_in_reads_a_url_as_every_reader_would_or_not_at_all(value, answer):
    assert ask({"x": value}, "host_in", ["x.org", "*.good.com"]) == answer


@pytest.mark.parametrize(
    "value",
    ["http://127.0.0.1", "http://127.0.0.1:80/x", "127.0.0.1", "http://[::ffff:127.0.0.1]/"],
)
def test_an_address_is_known_in_its_plain_spellings(value):
    assert ask({"x": value}, "host_in", ["127.0.0.1"]) == "yes"


@pytest.mark.parametrize(
    "value",
    [
        "http://2130706433",
        "http://0x7f.1",
        "http://127.1",
        "http://0177.0.0.1",
        "http://127.0.0.01",
        "http://0x7f000001",
    ],
)
def test_an_address_only_some_readers_understand_is_unknown(value):
    assert ask({"x": value}, "host_in", ["127.0.0.1"]) == "unknown"


def test_long_addresses_have_one_spelling():
    assert ask({"x": "http://[0:0:0:0:0:0:0:1]/"}, "host_in", "::1") == "yes"
    assert ask({"x": "http://[::1]:80/"}, "host_in", "[0::1]") == "yes"
    assert ask({"x": "http://[::2]/"}, "host_in", "[::1]") == "no"


PATHS = [
    ("a", ("a",)),
    ("a.b[0].c", ("a", "b", 0, "c")),
    ("$.a", ("a",)),
    ('$["odd key"].x', ("odd key", "x")),
    (r'["a\"b\\"]', ('a"b\\',)),
    ("items[*].id", ("items", "*", "id")),
    ("$ref", ("$ref",)),
    ("/a/b", ("a", "b")),
    ("/a~1b/~01/0/007", ("a/b", "~1", 0, "007")),
    ("/", ("",)),
    ("/a/٣", ("a", "٣")),
    (f"/a/{'9' * 5000}", ("a", "9" * 5000)),
]


@pytest.mark.parametrize(("text", "steps"), PATHS)
def test_a_path_is_taken_apart(text, steps):
    assert parse_path(text) == steps


@pytest.mark.parametrize(
    "text", ["", "$", "$.", "a..b", "a]", "a[", "a[x]", "a[-1]", 'a["b]', "a.", f"a[{'9' * 5000}]"]
)
def test_what_is_no_path_is_refused(text):
    with pytest.raises(RuleError):
        parse_path(text)


def test_a_path_walks_objects_and_lists():
    arguments = {"a": [{"b": 1}, {"b": 2}], "0": {"007": 3}}
    assert ask(arguments, "equals", 2, path="a[1].b") == "yes"
    assert ask(arguments, "equals", 3, path="/0/007") == "yes"
    assert ask(arguments, "equals", 2, path="a[2].b") == "unknown"
    assert ask(arguments, "exists", False, path="a[2].b") == "yes"
    assert ask(arguments, "equals", 2, path="a.b") == "unknown"


def test_over_a_list_an_allow_asks_every_element_and_a_deny_any():
    arguments = {"x": [{"n": 1}, {"n": 9}]}
    assert ask(arguments, "gt", 5, path="x[*].n", every=True) == "no"
    assert ask(arguments, "gt", 5, path="x[*].n", every=False) == "yes"
    assert ask({"x": [{"n": 9}, {}]}, "gt", 5, path="x[*].n", every=True) == "unknown"
    assert ask({"x": [{"n": 1}, {}]}, "gt", 5, path="x[*].n", every=False) == "unknown"
    for empty in ({"x": []}, {"x": {}}, {"x": "text"}, {}):
        assert ask(empty, "gt", 5, path="x[*].n", every=True) == "unknown"
        assert ask(empty, "gt", 5, path="x[*].n", every=False) == "unknown"


def test_one_plain_no_outweighs_what_cannot_be_told():
    (condition,) = conditions([{"path": "x", "gt": 5, "starts_with": "a"}])
    call = ToolCall(tool="t", arguments={"x": 1})
    assert holds(condition, Context(call), every=True)[0] == "no"
    (condition,) = conditions([{"path": "x", "starts_with": "a", "exists": True}])
    assert holds(condition, Context(ToolCall(tool="t")), every=False)[0] == "no"


def test_conditions_may_be_written_in_three_ways():
    wanted = conditions([{"path": "a", "equals": 1}])
    assert conditions({"path": "a", "equals": 1}) == wanted
    assert conditions({"a": {"equals": 1}}) == wanted
    assert conditions([{"path": "a", "op": "equals", "value": 1}]) == wanted
    assert conditions({"path": {"equals": 1}})[0].path == "path"
    assert conditions(None) == conditions([]) == ()


@pytest.mark.parametrize(
    "when",
    [5, "x", [5], [{}], [{"path": "a"}], [{"path": 5, "equals": 1}], [{"path": "a", "equal": 1}], {"a": 1}]
    + [[{"path": "", "equals": 1}], [{"path": "a", "op": [], "value": 1}]],
)
def test_what_is_no_condition_is_refused(when):
    with pytest.raises(RuleError) as caught:
        conditions(when)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("test", "operand"),
    [
        ("equals", math.nan),
        ("equals", {"a": [object()]}),
        ("one_of", []),
        ("one_of", "abc"),
        ("one_of", [math.inf]),
        ("starts_with", ""),
        ("starts_with", 5),
        ("contains", ""),
        ("matches", "("),
        ("matches", r"(a)\1"),
        ("matches", "(?=a)"),
        ("matches", 5),
        ("under", ""),
        ("under", []),
        ("under", ["a", ""]),
        ("host_in", "https://good.com"),
        ("host_in", "good.com:80"),
        ("host_in", "*"),
        ("host_in", ["a.b", "*."]),
        ("host_in", "g\u043eod.com"),
        ("host_in", "127.1"),
        ("host_in", 5),
        ("gt", "5"),
        ("gt", True),
        ("lt", math.nan),
        ("lt", math.inf),
        ("exists", 1),
    ],
)
def test_an_operand_that_could_never_match_is_refused(test, operand):
    with pytest.raises(RuleError):
        conditions([{"path": "x", test: operand}])


def test_a_huge_number_is_an_operand():
    assert ask({"x": 5}, "lt", 10**400) == "yes"


def test_every_test_says_what_it_takes():
    assert set(TESTS) == set(OPERAND) == set(OPERAND_WORDS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
WANTED = {
    "equals": 1,
    "one_of": ["a"],
    "starts_with": "a",
    "contains": "a",
    "matches": "a+",
    "under": "src",
} | {
    "host_in": "a.b",
    "gt": 1,
    "lt": 1,
    "exists": True,
}


@given(JSON | st.text(), st.booleans(), st.sampled_from(["", "/p"]))
def test_no_argument_makes_a_test_raise(value, every, project):
    for test, wanted in WANTED.items():
        answer = ask({"x": value}, test, wanted, every=every, project=project, resolve=os.path.realpath)
        assert answer in ("yes", "no", "unknown")
