"""Whoever decides for a gate: a store of the program's own, or the user's server. `Gate` opens one.

`turn` and `carrying` know nothing of it but what is here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from checkrein.asking import Remember
from checkrein.authority.taken import Taken
from checkrein.authority.wish import Wish
from checkrein.call import ToolCall
from checkrein.core.approvals import Settled
from checkrein.core.decision import Decided
from checkrein.settings.sources import state_dir


class Authority(Protocol):
    """Whoever decides: a store of the program's own, or the user's server."""

    near: bool
    user: str

    def first(self, call: ToolCall, wish: Wish, phase: str) -> Decided | Callable[[], Decided]: ...

    def wait(
        self, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
    ) -> Settled | None: ...

    def withdraw(self, entry: str, call: ToolCall, why: str) -> None: ...

    def take(self, entry: str, call: ToolCall, phase: str, again: bool) -> Taken: ...

    def pause(self, entry: str, call: ToolCall, step: int, payload: Any, told: str) -> None: ...

    def go_on(self, entry: str, call: ToolCall, step: int, phase: str, again: bool, told: str) -> Taken: ...

    def finish(self, entry: str, outcome: str, output: Any, evidence: str) -> None: ...

    def flush(self) -> None: ...

    def questions(self) -> list[dict[str, Any]]: ...

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        call: ToolCall | None = None,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str: ...

    def close(self) -> None: ...


def of_its_own(folder: str | os.PathLike[str] | None, agent: str, settings: Sequence[str]) -> Authority:
    """A store in the folder, or in the one that is the agent's where none is named."""
    from checkrein.doors.library.embedded import Embedded

    found = Path(folder) if folder is not None else state_dir() / "library" / _folder_name(agent)
    return Embedded(found, settings=settings)


def of_the_user(agent: str, session: str, project: str) -> Authority:
    """The running server."""
    from checkrein.doors.library.remote import Remote

    return Remote(agent, session, project)


def _folder_name(agent: str) -> str:
    return "".join(each if each.isalnum() or each in "-_" else "_" for each in agent) or "python"
