"""The shared vectors, and what no script may do to its preview: raise, run on, or fill it without end."""

import gc
import subprocess
import sys

import msgspec
import pytest
from ground import examples, vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.execute.preview import LANGUAGES, MOST_BYTES, extract_tool_calls, preview
from checkrein.execute.preview_scopes import Scope
from execute.previews import TANGLED, check, check_hostile

CALLS = vectors("static_calls.jsonl")


@pytest.mark.parametrize("row", CALLS, ids=[row["id"] for row in CALLS])
def test_shared_vectors(row):
    uses = extract_tool_calls(row["script"], row["language"], row.get("tools"))
    found = [msgspec.to_builtins(use) for use in uses]
    free = [use for use in row.get("may_report", []) if use not in row["expected"]]
    assert [use for use in found if use not in free] == row["expected"]


FAULTS = {
    "const x = ;\ncodemode.a()": ("javascript", "The script is not valid JavaScript."),
    "const x = (;": ("typescript", "The script is not valid TypeScript."),
    "x = = 1\nfs__a()": ("python", "The script is not valid Python."),
    "fs__a()\0": ("python", "The script is not valid Python."),
    "9" * 5000: ("python", "The script is not valid Python."),
    "fs__a('\ud800')": ("python", "The script is not valid text."),
    "codemode.a();" * 6000: ("javascript", "The script is longer than 64 KB."),
    "a" + ".a" * 30_000: ("python", TANGLED),
}


@pytest.mark.parametrize("script", FAULTS, ids=range(len(FAULTS)))
def test_what_cannot_be_read_is_empty_and_says_why(script):
    language, fault = FAULTS[script]
    assert preview(script, language).fault == fault
    assert extract_tool_calls(script, language) == []


def test_the_limit_counts_bytes_and_is_allowed_itself():
    script = "codemode.a();//"
    assert preview(script + "x" * (MOST_BYTES - len(script)), "javascript").uses
    assert preview(script + "é" * ((MOST_BYTES - len(script)) // 2 + 1), "javascript").fault


# One for each way to end: too long, not valid, too many steps, too deep, looked through.
@pytest.mark.parametrize(
    "name", ["200,000 open brackets", "open brackets", "nested functions", "Python chain", "backwards"]
)
def test_hostile_scripts_come_to_an_end(name):
    check_hostile(name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_script_full_of_calls_is_seen_whole(language):
    assert len(extract_tool_calls("codemode.a()\n" * 5000, language)) == 5000


TOKENS = {
    "python": (
        "codemode fs__a call_tool getattr globals eval x f ( ) [ ] { } . , : := = += == 'a' \"b\" f'{x}' +"
        " * ** - -> lambda await async def class if else elif for in while with as try: except: import from"
        " global nonlocal del match case return yield not and or is @ # \\ 1 🙂 é"
    ).split()
    + ["\n", "\n ", "\n  ", " "],
    "typescript": (
        "codemode globalThis eval Function Reflect.get x f ( ) [ ] { } . ?. , : ; = += ||= == 'a' `b${x}` `"
        " + => ... ! ? <any> as async await function class extends if else for of in while do switch case"
        " try catch let const var return yield new typeof delete type interface enum import from export"
        " bind call constructor \\u0063 // /* */ 1 🙂 é @ #"
    ).split()
    + ["\n", " ", "\u2028"],
}
SCRIPTS = {
    "python": [row["script"] for row in CALLS if row["language"] == "python"],
    "typescript": [row["script"] for row in CALLS if row["language"] != "python"],
}


@pytest.mark.parametrize("language", TOKENS)
@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_no_script_raises(language, data):
    pieces = st.sampled_from(TOKENS[language] + SCRIPTS[language]) | st.text(max_size=4)
    script = data.draw(st.sampled_from(["", " "])).join(data.draw(st.lists(pieces, max_size=30)))
    check(script, language)


@pytest.mark.parametrize("language", TOKENS)
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_no_damaged_script_raises(language, data):
    script = "\n".join(data.draw(st.lists(st.sampled_from(SCRIPTS[language]), min_size=1, max_size=4)))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(script)))
        script = (
            script[:at]
            + data.draw(st.sampled_from(TOKENS[language]))
            + script[at + data.draw(st.integers(0, 3)) :]
        )
    check(script, language)


def test_no_parser_is_loaded_before_it_is_needed():
    code = (
        "import sys; from checkrein.execute.preview import extract_tool_calls as look;"
        "look('fs__a()', 'python'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tree_sitter", "tree_sitter_typescript", "asyncio"} & set(done.stdout.split())


def test_nothing_is_printed_about_odd_escapes():
    code = "from checkrein.execute.preview import preview; preview('\"\\\\d\" is 1', 'python')"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("language", TOKENS)
def test_nothing_is_left_behind(language):
    for script in SCRIPTS[language]:
        preview(script, language)
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is Scope]
