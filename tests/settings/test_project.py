import os
import subprocess

import pytest

from checkrein.settings.project import project_of


def git(*arguments, cwd):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "main"
    folder.mkdir()
    git("init", "-q", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=folder)
    return folder


def test_a_folder_of_a_repository_belongs_to_its_root(repository):
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(inner) == project_of(repository) == str(repository)


def test_a_folder_outside_any_repository_is_its_own_project(tmp_path):
    assert project_of(tmp_path) == str(tmp_path)
    assert project_of(tmp_path / "not" / "there") == str(tmp_path / "not" / "there")


def test_a_link_leads_to_the_real_project(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    assert project_of(tmp_path / "link") == str(repository)


def test_a_worktree_is_its_main_repository(repository, tmp_path):
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=repository)
    (tmp_path / "tree" / "inner").mkdir()
    assert project_of(tmp_path / "tree" / "inner") == str(repository)


def test_a_submodule_is_its_own_project(repository, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git("init", "-q", cwd=outer)
    git("submodule", "add", "-q", str(repository), "sub", cwd=outer)
    assert (outer / "sub" / ".git").is_file()
    assert project_of(outer / "sub") == str(outer / "sub")
    assert project_of(outer) == str(outer)


def test_a_worktree_of_a_bare_repository_is_its_own_project(repository, tmp_path):
    git("clone", "-q", "--bare", str(repository), "bare.git", cwd=tmp_path)
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=tmp_path / "bare.git")
    assert project_of(tmp_path / "tree") == str(tmp_path / "tree")


@pytest.mark.invariant("no folder claims to be another project")
def test_no_folder_claims_to_be_another_project(repository, tmp_path):
    """Trust belongs to a project: a `.git` file alone must not borrow it."""
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=repository)
    thief = tmp_path / "thief"
    (thief / "fake").mkdir(parents=True)
    (thief / "fake" / "commondir").write_text(str(repository / ".git"), encoding="utf-8")
    (thief / "fake" / "gitdir").write_text(str(thief / ".git"), encoding="utf-8")
    for claim in (thief / "fake", repository / ".git" / "worktrees" / "tree", repository / ".git"):
        (thief / ".git").write_text(f"gitdir: {claim}\n", encoding="utf-8")
        assert project_of(thief) == str(thief)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"gitdir: ", b"gitdir: /no/such", b"gitdir: a\0b", b"hello"]
)
def test_a_broken_git_file_still_marks_a_project(content, tmp_path):
    (tmp_path / ".git").write_bytes(content)
    assert project_of(tmp_path) == str(tmp_path)


def test_a_git_pipe_is_not_waited_for(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    os.mkfifo(inner / ".git")
    assert project_of(inner) == str(inner)
