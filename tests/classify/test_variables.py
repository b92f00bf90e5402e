import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "command",
    [
        "X=rm; $X -rf src",
        "X=r; Y=m; $X$Y -rf src",
        "X=r; X+=m; $X -rf src",
        "A=(rm -rf src); ${A[@]}",
        "set -- rm -rf src; $@",
        "export X=rm; $X -rf src",
        "f() { $1 -rf src; }; f rm",
        "for X in ls rm; do $X -rf src; done",
        "if true; then X=rm; else X=ls; fi; $X -rf src",
    ],
)
def test_a_command_kept_in_a_variable_is_no_better_than_the_command(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "X=src; ls $X",
        "X=a.py; cat src/$X",
        "for f in a b; do cat $f; done",
        "N=5; head -n $N README.md",
        "local X=1; echo $X",
    ],
)
def test_a_variable_whose_value_is_known_costs_nothing(command):
    assert judge(command).category is Category.low


def test_a_variable_of_a_subshell_stays_in_it():
    assert judge("X=ls; (X=rm); $X README.md").category is Category.low
    assert judge("X=rm; (X=ls); $X README.md").category >= Category.high


def test_printing_every_variable_shows_secrets():
    for command in ("export", "declare -p", "export -p"):
        assert judge(command).category > Category.low


def test_an_index_that_runs_a_command_is_seen():
    assert judge("declare -i n='a[$(rm -rf src)]'").category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "printf -v PATH '%s' /tmp/evil; ls",
        "read -r PATH <<< /tmp/evil; ls",
        "for PATH in /tmp/evil; do ls; done",
        "unset PATH; : ${PATH:=/tmp/evil}; ls",
        "declare -n ref=PATH; ref=/tmp/evil; ls",
        "BASH_CMDS[ls]=/tmp/evil; ls",
        "declare -A BASH_ALIASES=([ls]='rm -rf x'); ls",
        "x='a[$(rm x)]'; echo $((x))",
        "x='a[$(rm x)]'; [[ x -eq 1 ]]",
    ],
)
def test_whoever_sets_a_variable_assigns_it(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        'while IFS= read -r line; do echo "$line"; done < list.txt',
        'while IFS=, read -r a b; do echo "$a"; done < data.csv',
        '[ -n "$(git status --porcelain)" ] && echo dirty',
        '[[ "$(git branch --show-current)" == main ]] && echo on main',
        'if [ "$(ls | wc -l)" -gt 3 ]; then echo many; fi',
    ],
)
def test_everyday_scripting_stays_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command", ["echo ${!n}", "declare -p GITHUB_TOKEN", "echo $STRIPE_KEY", "cat <<< $DB_PASS"]
)
def test_a_secret_variable_by_any_road_is_a_secret(command):
    assert judge(command).category >= Category.high


@pytest.mark.invariant("a declaration in quotes is a declaration")
@pytest.mark.parametrize(
    "command",
    [
        'export "LD_PRELOAD=/tmp/x.so"; ls',
        "declare -x 'PATH=/tmp'; ls",
        "n=LD_PRELOAD; export $n=/tmp/x.so; ls",
        'readonly "PATH=/tmp"; ls',
    ],
)
def test_a_declaration_in_quotes_is_a_declaration(command):
    assert judge(command).category is Category.high


@pytest.mark.parametrize(
    "command", ['while read k v; do export "$k=$v"; done < a', "export $(cat a | xargs); ls"]
)
def test_a_variable_nobody_knows_may_be_any(command):
    assert judge(command).category >= Category.medium


def test_a_harmless_declaration_in_quotes_is_harmless():
    assert judge('export "NODE_ENV=test" && npm test').category is Category.low
    assert judge('x=1; export "x"; export "FOO=bar"; ls').category is Category.low
