"""Which project a directory belongs to: the git root (the main repository for worktrees), else itself."""

from __future__ import annotations

import os
from pathlib import Path


def project_of(directory: str | os.PathLike[str]) -> str:
    """The project's real path. Worktrees of one repository are one project, submodules are their own."""
    start = Path(os.path.realpath(directory))
    for folder in (start, *start.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return str(folder)
        if mark.is_file():
            return str(_main_repository(mark) or folder)
    return str(start)


def _main_repository(mark: Path) -> Path | None:
    """The folder of the repository a worktree's `.git` file points at; None where it is not a worktree."""
    try:
        text = _line(mark)
        if not text.startswith("gitdir: "):
            return None
        gitdir = Path(os.path.realpath(mark.parent / text.removeprefix("gitdir: ")))
        common = Path(os.path.realpath(gitdir / _line(gitdir / "commondir")))
        back = os.path.realpath(gitdir / _line(gitdir / "gitdir"))
    except (OSError, ValueError):
        return None
    # INVARIANT: no folder claims to be another project; the repository itself must name the worktree.
    known = gitdir.parent == common / "worktrees" and back == os.path.realpath(mark)
    return common.parent if known and common.name == ".git" else None


def _line(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
