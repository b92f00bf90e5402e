"""What a model is told about its tools: as much as fits, and nothing a server could misuse."""

import ast
import json
import os
from pathlib import Path

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.execute.names import script_names
from checkrein.execute.stubs import (
    Budget,
    Described,
    brief,
    detailed,
    estimated_tokens,
    names,
    python,
    python_check,
    python_with,
    typescript,
    typescript_with,
)

FOLDER = Path(os.environ.get("CHECKREIN_DATA", "/nonexistent"))
corpora = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="set CHECKREIN_DATA to the folder with the shared corpora"
)
PLENTY = Budget(10_000_000)
READ = Described(
    "fs__read",
    "Read a file. It must exist.",
    {"properties": {"path": {"type": "string", "description": "Where it is"}}, "required": ["path"]},
    asks=True,
)
LIST = Described("fs__list", "List a folder.", {"properties": {}})


def parses(text):
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    tree = Parser(Language(tree_sitter_typescript.language_typescript())).parse(text.encode())
    return not tree.root_node.has_error


def members(text):
    """Names that are declared, not only mentioned in comments."""
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    root = Parser(Language(tree_sitter_typescript.language_typescript())).parse(text.encode()).root_node
    (statement,) = [node for node in root.children if node.type == "ambient_declaration"]
    kind = statement.named_children[0].named_children[0].child_by_field_name("type").named_children[0]
    return [
        node.child_by_field_name("name").text.decode()
        for node in kind.named_children
        if node.type == "method_signature"
    ]


def functions(text):
    """Names of functions; whatever else is there is a record or an import."""
    body = ast.parse(text).body
    assert all(isinstance(node, ast.AsyncFunctionDef | ast.ImportFrom | ast.Assign) for node in body)
    return [node.name for node in body if isinstance(node, ast.AsyncFunctionDef)]


def test_typescript_says_all_of_it():
    assert typescript([READ, LIST], PLENTY) == (
        "declare const codemode: {\n"
        "  /**\n"
        "   * Read a file. It must exist.\n"
        "   * path: Where it is\n"
        "   */\n"
        "  fs__read(args: { path: string }): Promise<any>; // asks\n"
        "  /** List a folder. */\n"
        "  fs__list(): Promise<any>;\n"
        "};\n"
    )


def test_python_says_all_of_it():
    assert python([READ, LIST], PLENTY) == (
        "from typing import Any, Literal, NotRequired, TypedDict\n"
        "# Read a file. It must exist.\n"
        "# path: Where it is\n"
        "async def fs__read(*, path: str) -> Any: ...  # asks\n"
        "# List a folder.\n"
        "async def fs__list() -> Any: ...\n"
    )


@pytest.mark.parametrize("write", [typescript, python])
def test_a_smaller_budget_says_less(write):
    tools = [READ, LIST]
    texts = list(dict.fromkeys(write(tools, Budget(most, "characters")) for most in range(400, -1, -1)))
    comment = "#" if write is python else "//"
    assert len(texts) == 5
    assert "It must exist." in texts[0]
    assert "Read a file." in texts[1] and "It must exist." not in texts[1]
    assert "fs__read(" in texts[2] and "Read" not in texts[2]
    assert texts[3] == f"{comment} fs__read (asks): Read a file.\n{comment} fs__list: List a folder.\n"
    assert (
        texts[4]
        == f"{comment} 2 tools: find them with search_tools(query), read them with get_tools(names).\n"
    )
    assert all(write(tools, Budget(len(text), "characters")) == text for text in texts[:4])


def test_tokens_are_estimated_from_bytes():
    assert estimated_tokens("") == 0
    assert estimated_tokens("abcde") == estimated_tokens("éé") + 1 == 2
    text = typescript([READ], PLENTY)
    assert typescript([READ], Budget(estimated_tokens(text))) == text
    assert typescript([READ], Budget(estimated_tokens(text) - 1)) != text


def test_no_tools():
    assert typescript([], PLENTY) == "// There are no tools.\n"
    assert "1 tool:" in python([LIST], Budget(0))


def test_one_tool_in_brief_and_in_detail():
    assert brief(READ) == "fs__read (asks): Read a file."
    assert brief(Described("a__b")) == "a__b"
    assert "Where it is" in detailed(READ, "python")
    assert functions(detailed(READ, "python")) == members(detailed(READ, "typescript")) == ["fs__read"]


HOSTILE_WORDS = [
    "*/ evil(): void; /*",
    "ok */\n  fs__evil(args: {}): Promise<any>;\n/**",
    "x\nasync def fs__evil(): ...",
    "x\r\u2028\u2029\x85\x0b\x0casync def fs__evil(): ...",
    '"""\nimport os\n"""',
    "\\\nimport os",
    "\ud800\x00\u202e// asks",
    "```\nimport os\n```",
    "**/ / * */*/ /",
    "x" * 1_000_000,
]


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
def test_descriptions_never_become_code(words):
    field = {"type": "string", "description": words}
    tool = Described("fs__read", words, {"properties": {"path": field, words[:90]: field}}, {"const": words})
    for docs in ("whole", "sentence", "none"):
        text = typescript_with([tool, LIST], docs)
        assert parses(text)
        assert members(text) == ["fs__read", "fs__list"]
        assert functions(python_with([tool, LIST], docs)) == ["fs__read", "fs__list"]
    assert functions(python_check([tool, LIST])) == ["fs__read", "fs__list"]
    for comment in ("//", "#"):
        assert all(line.startswith(f"{comment} fs__") for line in names([tool, LIST], comment).splitlines())
    assert len(brief(tool).splitlines()) == 1


NAMES = st.one_of(
    st.sampled_from(
        ["path", "class", "a-b", "__proto__", "None", "self", "list", "str", "*/", '"', "\\", "__x"]
    ),
    st.text(max_size=8),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(HOSTILE_WORDS[:9]),
)
KINDS = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object", "file"])


def schemas(inner):
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(KINDS, st.lists(KINDS, max_size=3), LEAVES),
            "properties": st.one_of(st.dictionaries(NAMES, inner, max_size=4), LEAVES),
            "required": st.one_of(st.lists(NAMES, max_size=4), LEAVES),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(NAMES, inner, max_size=2),
            "items": st.one_of(inner, st.lists(inner, max_size=2)),
            "prefixItems": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "enum": st.lists(st.one_of(LEAVES, inner), max_size=4),
            "const": LEAVES,
            "nullable": st.booleans(),
            "description": LEAVES,
            "$ref": st.sampled_from(
                ["#", "#/properties/path", "#/anyOf/0", "#/$defs/a", "http://x", "#/items"]
            ),
            "$defs": st.dictionaries(st.just("a"), inner),
        },
    )


SCHEMAS = st.recursive(st.one_of(LEAVES, st.just({})), schemas, max_leaves=12)


@settings(max_examples=examples(300), deadline=None)
@given(schemas(SCHEMAS), SCHEMAS, st.one_of(st.text(), st.sampled_from(HOSTILE_WORDS)), st.booleans())
def test_any_schema_becomes_valid_stubs(takes, gives, words, asks):
    tool = Described("a__b", words, takes, gives, asks)
    for docs in ("whole", "none"):
        text = typescript_with([tool, LIST], docs)
        assert parses(text), text
        assert members(text) == ["a__b", "fs__list"]
        assert functions(python_with([tool, LIST], docs)) == ["a__b", "fs__list"]
    assert functions(python_check([tool, LIST])) == ["a__b", "fs__list"]


class Read(dict):
    """A schema that counts how often it is read."""

    times = 0

    def get(self, *given):
        self.times += 1
        return super().get(*given)


@pytest.mark.parametrize("write", [typescript, python])
def test_thousands_of_tools_are_not_written_out_in_vain(write):
    takes = Read(properties={f"p{n}": {"enum": [f"v{n}{m}" for m in range(20)]} for n in range(30)})
    tools = [Described(f"s__t{n}", "word " * 300, takes) for n in range(3_000)]
    write(tools[:1], PLENTY)
    once = takes.times
    assert once
    assert len(write(tools, Budget(1_000))) < 200
    assert write(tools, Budget(200_000)).count("\n") == 3_000
    # Only as many schemas are read as there might be room for, at each of the lengths that are tried.
    assert takes.times < 1_000 * once


def test_the_type_check_knows_every_name_and_stays_bounded():
    takes = {"properties": {f"p{n}": {"enum": [f"v{n}{m}" for m in range(20)]} for n in range(30)}}
    text = python_check([Described(f"s__t{n}", "", takes) for n in range(2_000)])
    assert len(text) < 2_000_000
    assert text.count("async def ") == 2_000


@corpora
def test_real_tools_parse_and_are_worth_it():
    rows = json.loads((FOLDER / "tools.json").read_text())
    named = script_names((row["server"], row["name"]) for row in rows)
    tools = [
        Described(named[row["server"], row["name"]], row["description"], row["inputSchema"]) for row in rows
    ]
    expected = list(named.values())
    assert members(typescript(tools, PLENTY)) == functions(python(tools, PLENTY)) == expected
    assert functions(python_check(tools)) == expected
    assert parses(typescript(tools, PLENTY))
    assert len(typescript_with(tools, "sentence")) < len(json.dumps(rows)) / 3
