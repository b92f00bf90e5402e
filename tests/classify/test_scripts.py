"""Little languages: a script that only prints is low, however alarming its text."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


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


@pytest.mark.invariant("an awk program is low only when every part of it is known to print or compute")
@pytest.mark.parametrize(
    "program",
    [
        'BEGIN{x=4/2;system("id");y=4/2}',
        "{print | $0}",
        '{print "x" | $1}',
        'BEGIN{f="system"; @f("id")}',
        'if (1) /"/; system("id") #"/',
        'BEGIN{while((getline l < (".e" "nv"))>0) print l}',
        "{while((getline l < $1)>0) print l}",
        'BEGIN{ARGV[1]=".env";ARGC=2}{print}',
        'BEGIN{print SYMTAB["ENVIRON"]["X"]}',
        '{print > "/dev/std" "x"}',
        "{print $1 > $2}",
        '{print "never ends}',
        "{unknown_function($1)}",
    ],
)
def test_an_awk_program_is_low_only_when_every_part_of_it_is_known_to_print_or_compute(program):
    assert judge(f"awk '{program}' x").category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "awk '{print $1 > \"/dev/stderr\"}' x",
        "awk '{print $1/2, $2/3}' x",
        "awk '/a|b/ && $2 ~ /c|d/ {print; next}' x",
        "awk 'NR==FNR || FILENAME==ARGV[1] {print}' x y",
        'awk \'BEGIN{PROCINFO["sorted_in"]="@ind_str_asc"} {a[$1]++} END{for(k in a) print k, a[k]}\' x',
        "awk 'function f(x) {return x/2} {print f($1)}' x",
        "awk '{while ((getline line) > 0) n++} END {printf(\"%d\\n\", n)}' x",
        "awk 'if ($1 > 2) print' x",
        "jq '{env: .a}' x.json",
        "jq '\"\\(.env) env\"' x.json",
        "yq '\"env\"' x.yaml",
    ],
)
def test_look_alikes_of_commands_in_programs_stay_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "jq -n '\"\\(env)\"'",
        'jq -rn \'"a \\("b \\($ENV.X)")"\'',
        "jq -n '@sh \"\\(env.HOME)\"'",
        "jq 'input_filename' x",
        "yq -n '\"\\(strenv(X))\"'",
        'sed "s/a/$(cat x)/" y',
        'awk "{print $(cat x)}" y',
    ],
)
def test_interpolation_does_not_hide_a_program(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    ("command", "low"),
    [
        ('sed -n "${START},${END}p" x', True),
        ('sed "s/a/$B/" x', True),
        ('sed "s/a/b/;$MORE" x', False),
        ('sed "s/a/b/$FLAGS" x', False),
        ('sed "w $FILE" x', False),
    ],
)
def test_an_unknown_part_of_a_sed_script_is_tame_only_where_it_is_a_value(command, low):
    assert (judge(command).category is Category.low) == low


@pytest.mark.invariant("SQL behind a quote or a comment is read as the dialect reads it")
@pytest.mark.parametrize(
    ("command", "low"),
    [
        ("psql -c \"select '--'; drop table t\"", False),
        ("psql -c \"select '/*'; drop table t; select '*/'\"", False),
        ("psql -c 'select $a$ \"$a$; drop table t; select \"x'", False),
        ("psql -c \"select E'\\\\''; drop table t; --'\"", False),
        ("mysql -e \"select 'a\\\\''; drop table t; -- '\"", False),
        ("mysql -e 'select 1 /*! ; drop table t */'", False),
        ("mysql -e \"select 1 # '\n; drop table t; -- '\"", False),
        ("sqlite3 a.db \"select [']; drop table t; select [']\"", False),
        ("psql -c \"select '; drop table t'\"", True),
        ("psql -c 'select 1 -- ; drop table t'", True),
        ("psql -c 'select 1 /* ; drop table t */'", True),
        ("mysql -e 'select 1 # ; drop table t'", True),
        ("sqlite3 a.db 'select [a;b] from t'", True),
        ("mysql -e 'select `a;b` from t'", True),
    ],
)
def test_sql_behind_a_quote_or_a_comment_is_read_as_the_dialect_reads_it(command, low):
    assert (judge(command).category is Category.low) == low


def test_several_statements_for_a_server_are_not_taken_apart():
    assert judge("mysql -e 'select 1; select 2'").category is Category.medium
    assert judge("mysql -e 'select 1;'").category is Category.low
    assert judge("psql -c 'select 1' -c 'select 2'").category is Category.low
    assert judge("sqlite3 a.db 'select 1; select 2'").category is Category.low
