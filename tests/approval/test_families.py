"""What a remembered yes covers, from real lines through the real classifier."""

import json
import os
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest
from ground import PROJECT, judge
from hypothesis import given
from hypothesis import strategies as st

from checkrein.approval.families import Family, covers, family_of, label_of, offers
from checkrein.call import Category, Effect, Risk, tool_call
from checkrein.classify import classify

FOLDER = Path(os.environ.get("CHECKREIN_DATA", "/nonexistent"))
corpora = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="set CHECKREIN_DATA to the folder with the shared corpora"
)


def call(tool, project=PROJECT, **arguments):
    return tool_call({"tool": tool, "arguments": arguments, "project": project, "cwd": project})


def use(tool, **arguments):
    return classify(call(tool, **arguments), home="/home/dev")


def family(line):
    found = family_of(judge(line))
    assert found is not None, line
    return found


SAME = [
    ("go test ./a", "go test ./b"),
    ("go test ./a", "go test -run X -v ./b"),
    ("go test ./a > out.txt", "go test ./b > log.txt"),
    ("git commit -m x", "git commit -m y"),
    ("git commit -m x", 'git commit -m "a longer message"'),
    ("git add src/a.py", "git add src/b.py tests/c.py"),
    ("git add a && git commit -m x", "git commit -m y"),
    ("make x", "make x"),
    ("mkdir a", "mkdir b"),
    ("sed -i s/a/b/ src/a.py", "sed -i s/c/d/ src/b.py"),
    ("echo one > a.txt", "echo two > b.txt"),
    ("cargo build && cargo test", "cargo build"),
    ("CI=true make x", "make x"),
    ("git checkout -b x", "git checkout -b y"),
    ("mkdir -p a/b", "mkdir -p c"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_alike_lines_are_one_family(first, second):
    assert covers(family(first), judge(second))


OTHER = [
    # an effect or a scope more
    ("go test ./a", "go test ./a > out.txt"),
    ("go test ./a > out.txt", "go test ./a > docs/out.txt"),
    ("go test ./a > out.txt", "go test ./a > /tmp/out.txt"),
    ("go test ./a > out.txt", "go test ./a > src/out.go"),
    ("sed -i s/a/b/ src/a.py", "sed -i s/a/b/ src/a.py docs/a.md"),
    ("mkdir a", "mkdir ~/a"),
    ("echo x > notes.txt", "echo x > Makefile"),
    ("git commit -m x", "git commit -F /etc/hostname"),
    ("git commit -m x", "git commit -am x"),
    ("git commit -m x", "git commit --template=y -m x"),
    ("git checkout -b x", "git checkout main src/a.py"),
    ("git checkout main", "git checkout src/a.py"),
    ("git merge main", "git merge other"),
    ("git tag v1", "git tag -f v1"),
    ("truncate -s 8 a", "truncate -r b a"),
    ("tar -cf a.tar src", "tar -rf a.tar src"),
    # a command more
    ("go test ./a", "go test ./a && make x"),
    ("go test ./a", "go test ./a | tee out.txt"),
    ("make x", "make x | tail"),
    ("make x", "make x | sh"),
    ("make x", "make x; ls"),
    ("git commit -m x", "git add a && git commit -m x"),
    ("git commit -m x", "git merge x"),
    ("git commit -m x", 'git commit -m "$(make x)"'),
    # options that run something, or do more
    ("git commit -m x", "git -c core.editor=./x commit -m x"),
    ("git commit -m x", "git -c core.hooksPath=x commit -m x"),
    ("git commit -m x", "git commit --no-verify -m x"),
    ("git commit -m x", "git commit --amend -m x"),
    ("git commit -m x", "git -C sub commit -m x"),
    ("git -C sub commit -m x", "git -C sub rebase main"),
    ("git rebase main", "git rebase -x 'make y' main"),
    ("git branch x", "git branch -D x"),
    ("git stash", "git stash drop"),
    ("git config user.email x", "git config user.name x"),
    ("go test ./a", "go test -exec ./x ./a"),
    ("go build ./...", "go build -toolexec=./x ./..."),
    ("find . -name a > x.txt", "find . -name a -exec make x ';' > x.txt"),
    ("find . -name a > x.txt", "find . -name a -delete > x.txt"),
    ("pytest tests/a", "pytest -p evil tests/a"),
    ("cargo build", "cargo build --config x"),
    # what runs our eyes cannot follow: word for word
    ("make x", "make y"),
    ("make x", "make x y"),
    ("make -C sub x", "make -C sub y"),
    ("make x y", "make x y SHELL=/tmp/sh"),
    ("make x", "make -f other.mk x"),
    ("make x", "make -fother.mk x"),
    ("make x", "make x --eval=y"),
    ("npm run build", "npm run deploy"),
    ("npm run build", "npm run build -- --publish"),
    ("npm --prefix app run build", "npm --prefix app run deploy"),
    ("python manage.py migrate", "python manage.py flush --noinput"),
    ("./run.sh a", "./run.sh b"),
    ("frobnicate x", "frobnicate x --delete"),
    ("cargo run -- a", "cargo run -- b"),
    ("curl localhost:8000", "curl localhost:8000 -X DELETE"),
    ("curl localhost:8000/a", "curl localhost:8000/b"),
    ("sqlite3 a.db 'delete from x'", "sqlite3 a.db 'drop table x'"),
    ("sqlite3 a.db 'delete from x'", "sqlite3 b.db 'delete from x'"),
    # the same words somewhere else, or in other surroundings
    ("make x", "cd sub && make x"),
    ("cd sub && make x", "cd other && make x"),
    ("make x", "cd /tmp/x && make x"),
    ("go test ./a", "cd /tmp/x && go test ./a"),
    ("git commit -m x", "cd /tmp/x && git commit -m x"),
    ("make x", "LD_PRELOAD=./x.so make x"),
    ("go test ./a", "LD_PRELOAD=./x.so go test ./a"),
    ("make x", "AWS_PROFILE=live make x"),
    ("AWS_PROFILE=test make x", "AWS_PROFILE=live make x"),
    ("make x", "export AWS_PROFILE=live; make x"),
    ("make x", "env AWS_PROFILE=live make x"),
    ("make x", "sudo make x"),
    # what nobody can see into or know
    ("make x", "make $X"),
    ("git add a", "git add $X"),
    ("git checkout a", 'git checkout "$X"'),
    ("git commit -m x", "git commit $X"),
    ("go test ./a", "$TOOL test ./a"),
    ("go test ./a", "eval 'go test ./a'"),
    ("python a.py", "python -c 'print(1)'"),
    ("python a.py", "python < a.py"),
    ("git commit -m x", "git commit -m x )"),
    # a higher category
    ("git add a", "rm a"),
    ("mkdir a", "chmod +x a"),
    ("git checkout a", "git checkout -- ."),
    ("git commit -m x", "git push"),
]


@pytest.mark.invariant("a remembered family never covers a call with an effect, a scope or a command more")
@pytest.mark.parametrize(("first", "second"), OTHER)
def test_no_family_covers_more_than_was_seen(first, second):
    assert judge(second).effects, second
    assert not covers(family(first), judge(second))


@pytest.mark.invariant("what is high, or cannot be seen into, is remembered word for word only")
@pytest.mark.parametrize(
    "line",
    [
        "rm a",
        "git reset --hard",
        "npm install",
        "python -c 'print(1)'",
        "make $X",
        "make `ls`",
        'bash -c "$X"',
        "cat a | sh",
        "echo hi",
        "make x &&",
        "git push",
        "curl https://x.example",
        f"python {'d/' * 120}a.py",
        "; ".join(f"echo x > f{number}.txt" for number in range(80)),
    ],
)
def test_what_is_high_opaque_or_cut_off_has_no_family(line):
    assert family_of(judge(line)) is None


def test_a_long_word_is_never_cut_into_its_neighbour():
    long = "sub/" + "d" * 100
    assert not covers(family(f"make -C {long}a x"), judge(f"make -C {long}b x"))
    assert covers(family(f"make -C {long}a x"), judge(f"make -C {long}a x"))


def test_effects_the_classifier_cut_off_are_not_taken_for_none():
    many = tuple(Effect("write", "src", str(number)) for number in range(64))
    assert family_of(Risk(category=Category.medium, effects=many[:63])) is not None
    assert family_of(Risk(category=Category.medium, effects=many)) is None
    cut = (Effect("write", "database", "x" * 200),)
    assert family_of(Risk(category=Category.medium, effects=cut, commands=("psql",))) is None


EDITS = {
    "src/a.py": "src",
    "src/deep/b.py": "src",
    "docs/a.md": "docs",
    "tests/test_a.py": "tests",
    "/tmp/x": "tmp",
    "notes.txt": "project",
}


@pytest.mark.parametrize("other", EDITS)
@pytest.mark.parametrize("path", EDITS)
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_edits_reach_as_far_as_their_part_of_the_project(tool, path, other):
    known = family_of(use(tool, file_path=path))
    assert covers(known, use(tool, file_path=other)) is (EDITS[path] == EDITS[other])


@pytest.mark.parametrize(
    "other",
    ["Makefile", ".github/workflows/a.yml", ".env", ".envrc", "checkrein.toml", "conftest.py", "../x"],
)
def test_an_edit_never_covers_files_that_run_or_hold_secrets(other):
    for path in EDITS:
        assert not covers(family_of(use("Edit", file_path=path)), use("Edit", file_path=other))


def test_files_a_build_runs_are_alike_to_none():
    known = family_of(use("Edit", file_path="setup.py"))
    assert covers(known, use("Edit", file_path="setup.py"))
    assert not covers(known, use("Edit", file_path="build.rs"))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Skill", {"skill": "x"}),
        ("exec", {"command": "ls"}),
        ("Mystery", {"a": 1}),
        ("mcp__db__query", {"sql": "select 1"}),
        ("mcp__fs__write_file", {"path": "src/a.py"}),
        ("mcp__mail__send", {"to": "x"}),
    ],
)
def test_a_tool_that_does_whatever_its_input_says_has_no_family(tool, arguments):
    assert family_of(use(tool, **arguments)) is None


def test_the_web_is_remembered_host_by_host():
    known = family_of(use("WebFetch", url="https://a.example/x"))
    assert covers(known, use("WebFetch", url="https://a.example/y"))
    assert not covers(known, use("WebFetch", url="https://b.example/x"))
    known = family_of(use("mcp__browser__navigate", url="https://a.example/x"))
    assert not covers(known, use("mcp__browser__navigate", url="https://b.example/x"))


def test_a_family_is_kept_as_hashes_and_survives_the_store():
    known = family("AWS_PROFILE=live make deploy")
    body = msgspec.json.encode(known)
    assert b"make" not in body
    assert b"live" not in body
    assert msgspec.json.decode(body, type=Family) == known


PIECES = [
    "go test ./a", "go test ./b -v", "git commit -m x", "git add a", "git add src/b", "make x", "make y",
    "mkdir a", "mkdir docs/a", "sed -i s/a/b/ src/a.py", "echo x > a.txt", "echo x > docs/a", "ls", "tail -5",
    "cat a", "cd sub", "cd /tmp/x", "rm a", "curl localhost:1", "python a.py", "python a.py -x", "npm run a",
    "git -C sub add a", "git stash", "X=1 make x", "export X=1", "make $Y", "git add $Y", "cargo build",
]  # fmt: skip
LINES = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([" && ", "; ", " | ", " || ", " & "])),
    min_size=1,
    max_size=4,
).map(lambda found: "".join(piece + joint for piece, joint in found[:-1]) + found[-1][0])
PLACES = ("src", "docs", "tests", "tmp", "project")


def marks(risk):
    """Kind, scope and, where it counts, target; said anew so that a slip in the product is seen."""
    for effect in risk.effects:
        free = effect.kind == "read" or (effect.kind == "write" and effect.scope in PLACES)
        alike = effect.kind == "git" and effect.target.startswith(("git add ", "git commit "))
        target = " ".join(effect.target.split()[:2]) if alike else effect.target
        yield (effect.kind, effect.scope, "" if free else target)


def assert_no_more(one, other):
    assert other.category < Category.high
    assert other.category <= one.category
    assert other.complexity < 0.8
    assert set(marks(other)) <= set(marks(one))
    assert set(other.commands) <= set(one.commands)


@given(LINES, LINES)
def test_what_is_covered_has_no_effect_and_no_command_more(first, second):
    one, other = judge(first), judge(second)
    known = family_of(one)
    if known is None:
        return
    assert covers(known, one)
    if covers(known, other):
        assert_no_more(one, other)


def lines_of_the_corpora():
    for text in (FOLDER / "shell_commands.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(text)["command"]
    for text in (FOLDER / "agent_sessions.jsonl").read_text(encoding="utf-8").splitlines():
        for each in json.loads(text)["calls"]:
            if isinstance(each["arguments"].get("command"), str):
                yield each["arguments"]["command"]


@corpora
def test_no_real_line_is_covered_by_the_family_of_another_with_less():
    by_command, covered = defaultdict(dict), 0
    for line in lines_of_the_corpora():
        risk = judge(line)
        for command in {each.split()[0] for each in risk.commands if each.split()}:
            by_command[command][line] = risk
    for group in by_command.values():
        risks = [risk for risk in group.values() if family_of(risk) is not None]
        known = [(risk, family_of(risk)) for risk in risks]
        for one, its in known:
            for other in group.values():
                if other is not one and other.category < Category.high and covers(its, other):
                    covered += 1
                    assert_no_more(one, other)
    assert covered > 1_000


# -- what a person reads ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("go test ./a", "`go test` in this project, with no other effect than now"),
        (
            "sed -i s/a/b/ src/a.py",
            "`sed -i` in this project, writing files of the project, source files, "
            "with no other effect than now",
        ),
        (
            "cd sub && make x",
            f"`cd`, `make x (in {PROJECT}/sub)` in this project, with no other effect than now",
        ),
        (
            "ls a; cat b; tail c; head d; make x",
            "`ls`, `cat`, `tail`, `head` and 1 more in this project, with no other effect than now",
        ),
    ],
)
def test_a_label_names_the_commands_and_where_they_write(line, label):
    assert label_of(call("Bash", command=line), judge(line)) == label


def test_labels_of_tools_say_where_and_whom():
    def label(tool, **arguments):
        return label_of(call(tool, **arguments), use(tool, **arguments))

    assert label("Edit", file_path="src/a.py") == "Edit on source files in this project"
    assert label("WebFetch", url="https://a.example/x") == "WebFetch on a.example in this project"


def test_labels_are_masked_before_they_are_cut():
    secret = "s3cr3t-" + "v" * 60
    line = f"python a.py {'x' * 70} {secret}"
    risk = judge(line)
    label = label_of(call("Bash", command=line), risk, lambda text: text.replace(secret, "***"))
    assert secret[:20] not in label
    assert "***" in label
    assert len(label_of(call("Bash", command=line), risk)) < 200


def test_offers_are_narrowest_first_and_never_wider_than_a_servers_tool():
    def offered(tool, **arguments):
        return [each.what for each in offers(call(tool, **arguments), use(tool, **arguments))]

    assert offered("Bash", command="make x") == ["exact", "family"]
    assert offered("Bash", command="rm x") == ["exact"]
    assert offered("Edit", file_path="src/a.py") == ["exact", "family"]
    assert offered("mcp__db__query", sql="x") == ["exact", "tool"]
    assert offered("mcp__browser__navigate", url="https://a.example") == ["exact", "family", "tool"]
    assert offered("mcp__mail__send", to="x") == ["exact"]
