"""Tools are found by what they do, whatever is asked."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.search import MOST_FOUND, Search, Searchable

FOLDER = Path(os.environ.get("CHECKREIN_DATA", "/nonexistent"))
corpora = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="set CHECKREIN_DATA to the folder with the shared corpora"
)
TOOLS = (
    Searchable("fs__move_file", "Move or rename files and directories.", ("source", "destination")),
    Searchable("fs__edit_file", "Make line-based edits to a text file.", ("path", "oldText", "newText")),
    Searchable("hub__createPullRequest", "Open a change for review on GitHub", ("owner", "repo")),
    Searchable("k8s__scale", "Scale a deployment", ("replicas",)),
)


@pytest.fixture(scope="module")
def search():
    found = Search(TOOLS)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("renaming a file", "fs__move_file"),
        ("creating pull requests", "hub__createPullRequest"),
        ("createPullRequest", "hub__createPullRequest"),
        ("hub__createPullRequest", "hub__createPullRequest"),
        ("github", "hub__createPullRequest"),
        ("replace old text", "fs__edit_file"),
        ("oldText", "fs__edit_file"),
        ("replicas", "k8s__scale"),
        ("directo", "fs__move_file"),
        ("EDIT-FILE!", "fs__edit_file"),
    ],
)
def test_words_find_tools_however_they_are_bent_or_joined(search, query, first):
    assert search.find(query, 5)[0] == first


def test_all_words_come_before_some(search):
    assert search.find("edit file", 5) == ["fs__edit_file", "fs__move_file"]


@pytest.mark.parametrize(
    "query", ["", "   ", "!!", "zzz", "\0", "\ud800", "🙂", '"', "*", "()", "qq NEAR zz"]
)
def test_what_matches_nothing_finds_nothing(search, query):
    assert search.find(query, 5) == []


@pytest.mark.invariant("what reaches the index's query language is letters and digits, each word in quotes")
@pytest.mark.parametrize(
    "query",
    ['file" OR "scale', "file*", "NEAR(file scale)", "name:file", "-file", "file) --", "'; DROP TABLE"],
)
def test_the_index_is_given_words_and_never_orders(search, query):
    assert "fs__move_file" in search.find(query, 5) or "DROP" in query
    assert search.find("column:description parameters: file", 1)


@given(st.text(max_size=60), st.integers(-5, 500))
def test_any_text_is_a_query(search, query, limit):
    assert len(search.find(query, limit)) <= max(0, min(limit, len(TOOLS)))


def test_long_queries_and_descriptions_are_bounded():
    flooding = [Searchable(f"s__t{number}", "word " * 100_000, ("p",) * 10_000) for number in range(3)]
    search = Search([*flooding, *(Searchable(f"x__y{number}", "word") for number in range(200))])
    assert len(search.find("word " * 100_000, 1_000_000)) == MOST_FOUND
    search.close()


def test_hostile_tools_are_indexed_all_the_same():
    search = Search([Searchable("s__t", "\ud800\0 \" ' ); fine\u202e", ("\udfff", "odd-name"))])
    assert search.find("fine odd", 1) == ["s__t"]
    search.close()


def corpus():
    tools = json.loads((FOLDER / "tools.json").read_text())
    return [
        Searchable(
            f"{tool['server']}__{tool['name']}",
            tool["description"],
            tuple(tool["inputSchema"].get("properties") or ()),
        )
        for tool in tools
    ]


@corpora
def test_real_queries_find_real_tools():
    search = Search(corpus())
    queries = json.loads((FOLDER / "tool_queries.json").read_text())
    found = [(kind, search.find(query, 5), wanted) for kind, query, wanted in queries]
    search.close()
    first = sum(names[:1] != [] and names[0] in wanted for _, names, wanted in found)
    any_of_five = [(kind, bool(set(names) & set(wanted))) for kind, names, wanted in found]
    assert first / len(queries) >= 0.65
    assert sum(hit for _, hit in any_of_five) / len(queries) >= 0.85
    assert all(hit for kind, hit in any_of_five if kind == "inf")


def many(count):
    words = "read write list create delete file issue branch message page node chart".split()
    return [
        Searchable(f"s{n}__{words[n % 12]}_{words[n % 7]}", " ".join(words[: n % 12] * 4), (words[n % 5],))
        for n in range(count)
    ]


def steps_of(work):
    """What the work came to, and how many functions were called for it."""
    steps = 0

    def count(_frame, event, _argument):
        nonlocal steps
        steps += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return work(), steps
    finally:
        sys.setprofile(before)


def test_twice_the_tools_are_twice_the_work_to_index_and_no_more_to_search():
    small, indexing_small = steps_of(lambda: Search(many(200)))
    large, indexing_large = steps_of(lambda: Search(many(400)))
    assert indexing_large < 2.5 * indexing_small
    for word in ("read", "chart", "nowhere"):
        query = f"{word} a file in the list"
        found, steps = steps_of(lambda query=query: small.find(query, 10))
        assert len(found) == 10
        assert steps_of(lambda query=query: large.find(query, 10))[1] <= steps + 10
    small.close()
    large.close()
