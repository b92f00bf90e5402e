import json

import pytest
from click.testing import CliRunner
from ground import vectors

from checkrein.cli.eval_preview import eval_preview
from checkrein.errors import InputError, NotFoundError

SUFFIX = {"javascript": "mjs", "typescript": "ts", "python": "py"}


def run(*words, input=None):
    done = CliRunner().invoke(eval_preview, [str(word) for word in words], input=input)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_shared_vectors_through_the_command(tmp_path):
    for row in vectors("static_calls.jsonl"):
        file = tmp_path / f"script.{SUFFIX[row['language']]}"
        file.write_text(row["script"], encoding="utf-8", newline="")
        names = ["--tools", ",".join(row["tools"])] if "tools" in row else []
        found = json.loads(run(file, "--json", *names).stdout)
        free = [use for use in row.get("may_report", []) if use not in row["expected"]]
        assert [use for use in found if use not in free] == row["expected"], row["id"]


def test_people_see_a_table_and_what_cannot_be_foretold(tmp_path):
    file = tmp_path / "a.ts"
    file.write_text("codemode.read({});\ncodemode[x]({});\nxs.map(codemode.move)")
    lines = run(file).stdout.splitlines()
    assert lines[1].split(maxsplit=2) == ["1:0", "read", "called"]
    assert lines[2].split(maxsplit=2)[:2] == ["2:0", "?"]
    assert lines[3].split(maxsplit=2) == ["3:7", "move", "handed on"]
    assert lines[4] == "1 of 3 cannot be foretold."
    file.write_text("1 + 1")
    assert run(file).stdout == "No tool calls are seen.\n"


def test_standard_input_needs_a_language():
    assert (
        json.loads(run("-", "--language", "python", "--json", input="fs__a()").stdout)[0]["tool"] == "fs__a"
    )
    with pytest.raises(InputError, match="--language"):
        run("-", input="fs__a()")
    assert run("-", "--language", "ruby", input="").exit_code == 2


def test_names_are_given_with_commas_or_several_times():
    script = "a(); b(); fs__c()"
    words = ["-", "--language", "python", "--json"]
    found = json.loads(run(*words, "--tools", "a, b", "--tools", "x", input=script).stdout)
    assert [use["tool"] for use in found] == ["a", "b"]
    assert [use["tool"] for use in json.loads(run(*words, input=script).stdout)] == ["fs__c"]
    assert json.loads(run(*words, "--tools", "", input=script).stdout) == []


@pytest.mark.parametrize(
    ("script", "fault"),
    [("const = 1", "is not valid JavaScript"), ("codemode.a();" * 100_000, "is longer than 64 KB")],
)
def test_what_cannot_be_read_is_an_empty_list_and_a_word(tmp_path, script, fault):
    file = tmp_path / "a.js"
    file.write_text(script)
    done = run(file, "--json")
    assert json.loads(done.stdout) == []
    assert fault in done.stderr
    assert run(file).stdout == ""


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(NotFoundError):
        run(tmp_path / "none.py")
    with pytest.raises(InputError, match="cannot be read"):
        run(tmp_path, "--language", "python")
    with pytest.raises(InputError, match="language"):
        run(tmp_path / "a.rb")
    (tmp_path / "a.py").write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        run(tmp_path / "a.py")


def test_a_tool_s_name_cannot_drive_the_terminal(tmp_path):
    file = tmp_path / "a.js"
    file.write_text("codemode['\\x1b[2J\\u202e']()")
    assert "\x1b[2J" not in run(file).stdout
