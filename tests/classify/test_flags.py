import pytest
from ground import judge

from checkrein.call import Category
from checkrein.classify.options import telling


@pytest.mark.parametrize(
    "command", ["sort -o out.txt a", "sort --compress-program=x a", "sort --frobnicate a"]
)
def test_an_option_that_writes_runs_or_is_unknown_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    ["eslint --rulesdir /tmp/evil src", "mypy --config-file=/tmp/x src", "nm --plugin=/tmp/evil.so a.o"],
)
def test_an_option_nobody_listed_is_judged_by_its_name_and_value(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command", ["sort -rn a", "ls --color=auto", "wc -l a b", "grep -rn --include=*.py x src"]
)
def test_everyday_options_cost_nothing(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize("name", ["--exec", "--plugin", "--output", "--config-file", "--preload"])
def test_some_names_tell(name):
    assert telling(name)


def test_an_option_we_have_not_listed_may_open_the_secret_it_names():
    assert judge("diffstat --file=.env").category is Category.high
    assert judge("tokei --exclude=.env").category is Category.low
