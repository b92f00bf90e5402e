"""Little languages: a script that only prints is low, however alarming its text."""

from __future__ import annotations

import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify


def judge(command):
    call = {
        "tool": "Bash",
        "arguments": {"command": command},
        "project": "/home/dev/app",
        "cwd": "/home/dev/app",
    }
    return classify(tool_call(call), home="/home/dev")


@pytest.mark.parametrize(
    "command",
    [
        "sed -n '/e/p' x",
        "sed '/w x/d' x",
        "sed 's/rm/w/g' x",
        "sed 's|a|e|' x",
        "sed '1~2d;$!N' x",
        "sed -e 's/a/b/' -e '/x/d' x",
        "sed -n '/start/,/end/{/x/p}' x",
        "sed 'a\\some text w out' x",
        "awk '{print $1}' x",
        "awk '$1 > 5 {print $2}' x",
        "awk '{print ($1 > $2)}' x",
        "awk -F: '{print $1}' /etc/passwd",
        "awk '/rm -rf/ {n++} END {print n}' x",
        "awk '{print \"a > b | c\"}' x",
        "jq '.env' x.json",
        "jq '.a | select(.env == \"x\")' x.json",
        "jq '\"$ENV\"' x.json",
        "yq '.a.environment' x.yaml",
    ],
)
def test_a_script_that_only_prints_is_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "sed 's/a/b/e' x",
        "sed 's/a/b/ge' x",
        "sed '1e id' x",
        "sed -n '/x/e' x",
        "sed 's/a/b/w /etc/x' x",
        "sed 'w out' x",
        "sed -n '/x/W out' x",
        "sed 's,a,b,w out' x",
        "sed -f x.sed x",
        "sed '1Z' x",
        "awk '{print > \"out\"}' x",
        "awk '{print >> $1}' x",
        "awk '{print | \"sh\"}' x",
        "awk '{\"id\" | getline y; print y}' x",
        "awk 'BEGIN {system(\"id\")}'",
        'awk \'{printf "%s", $1 > "out"}\' x',
        "awk 'BEGIN {print ENVIRON[\"X\"]}'",
        "awk '@load \"x\"' x",
        "awk -f x.awk x",
        "awk 'BEGIN {while ((getline l < \"f\") > 0) print l}'",
        "gawk 'BEGIN {s = \"/inet/tcp/0/x/1\"; print 1 |& s}'",
        "jq '.a | env' x.json",
        "jq '$ENV.PATH' x.json",
        "jq 'import \"x\" as x; .' x.json",
        "yq 'load(\"x\")' a.yaml",
        "yq '.a = env(X)' a.yaml",
    ],
)
def test_a_script_that_writes_runs_or_reads_more_is_not(command):
    assert judge(command).category > Category.low


def test_a_sed_script_is_judged_by_the_files_it_names():
    assert judge("sed 'r .env' x").category is Category.high
    assert judge("sed 'r notes.txt' x").category is Category.low
    assert judge("sed 'w /home/dev/.bashrc' x").category is Category.high


@pytest.mark.parametrize(
    ("sql", "low"),
    [
        ("select 1", True),
        ("SELECT a FROM t -- drop table t", True),
        ("explain select 1", True),
        ("with a as (select 1) select * from a", True),
        ("pragma table_info(t)", True),
        ("select 'insert into t'", True),
        ("pragma journal_mode = wal", False),
        ("select 1; drop table t", False),
        ("explain analyze delete from t", False),
        ("insert into t values (1)", False),
        ("select * into u from t", False),
        ("vacuum into 'x'", False),
        ("attach 'x' as y", False),
    ],
)
def test_sql_reads_or_changes(sql, low):
    assert (judge(f'sqlite3 a.db "{sql}"').category is Category.low) == low
