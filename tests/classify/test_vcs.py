"""Git: reading is low, configuration and other repositories can make it run anything."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log -p --stat",
        "git diff HEAD~1 -- src",
        "git show HEAD:a.py",
        "git blame a.py",
        "git branch",
        "git branch -a --list 'x*'",
        "git tag -l",
        "git config --get user.name",
        "git config --list",
        "git reflog HEAD~5",
        "git -C . status",
        "git -c core.pager=cat log",
        "git -c color.ui=never status",
        "git --no-pager log -1",
        "git log --grep='rm -rf' --format='%h %s'",
        "git stash list",
        "git remote -v",
    ],
)
def test_reading_a_repository_is_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "git -c core.pager='sh x' log",
        "git -c core.fsmonitor=x status",
        "git -c alias.x='!sh' x",
        "git -c diff.external=x diff",
        "git -c $X log",
        "git -C /tmp/x status",
        "cd /tmp/x && git status",
        "git --exec-path=/tmp log",
        "git --git-dir=/tmp/x log",
        "git log --output=x",
        "git diff --ext-diff",
        "git grep -Ox a",
    ],
)
def test_configuration_and_other_repositories_are_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    ("command", "domains", "category"),
    [
        ("git add .", ("git_local",), Category.medium),
        ("git commit -m x", ("git_local",), Category.medium),
        ("git branch x", ("git_local",), Category.medium),
        ("git tag v1", ("git_local",), Category.medium),
        ("git config user.name x", ("git_local",), Category.medium),
        ("git branch -D x", ("git_local",), Category.high),
        ("git reset --hard", ("git_local",), Category.high),
        ("git reflog expire --all", ("git_local",), Category.high),
        ("git fetch", ("git_remote",), Category.medium),
        ("git push", ("git_remote",), Category.high),
        ("git config --global user.name x", ("shell_exec",), Category.high),
        ("git config alias.x '!sh'", ("shell_exec",), Category.high),
        ("git config core.hooksPath x", ("shell_exec",), Category.high),
    ],
)
def test_changes_belong_to_the_repository_the_remote_or_the_machine(command, domains, category):
    risk = judge(command)
    assert (risk.domains, risk.category) == (domains, category)


def test_secrets_in_history_are_still_secrets():
    assert judge("git show HEAD:.env").category is Category.high
    assert judge("git cat-file -p HEAD:config/.env").category is Category.high
    assert judge("git show HEAD:.env.example").category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "git branch -v -f main HEAD~5",
        "git branch --sort=refname x",
        "git branch --format='%(refname)' x",
        "git branch -u origin/main",
        "git tag --sort=refname v9",
        "git config --unset-all user.email",
        "git config --remove-section remote.origin",
        "git config edit",
        "git config --get http.https://github.com/.extraheader",
        "git config get credential.helper",
        "git archive HEAD .env",
        "git log -U3 -- .env",
        "git remote show origin",
        "hg log --config extensions.x=/tmp/x.py",
        "svn diff --diff-cmd /tmp/x",
        "svn cat https://x.example/x",
        "jj log --config=ui.pager=/tmp/x",
        "gh config get -h github.com oauth_token",
    ],
)
def test_what_changes_runs_or_shows_secrets_is_not_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "git branch -vv",
        "git branch -a --sort=-committerdate",
        "git branch --merged main",
        "git branch --contains HEAD",
        "git tag -l 'v*' --sort=-version:refname",
        "git tag -n",
        "git config --get user.email",
        "git config --list",
        "git archive --list",
        "git log -- .env",
        "git remote show",
        "git remote -v",
        "git push --dry-run --help",
        "svn log -l 3",
        "gh config get git_protocol",
        "gh pr list",
    ],
)
def test_looking_at_the_repository_is_low(command):
    assert judge(command).category is Category.low


@pytest.mark.invariant("a subcommand gh does not ship is an extension and never low")
def test_a_subcommand_gh_does_not_ship_is_an_extension_and_never_low():
    assert judge("gh dash view").category > Category.low
    assert judge("gh some-extension list").category > Category.low
    assert judge("gh issue view 3").category is Category.low
