"""A call by the name of a tool that no function stands for: `gate.call`, `gate.decide` and their resuming.

`Gate` drives what is made here; `tools` has the calls of wrapped functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.doors.library.arguments import plain_arguments, steady
from checkrein.doors.library.driving import Steps
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.tools import Spec
from checkrein.doors.library.turn import Turn
from checkrein.errors import InputError

if TYPE_CHECKING:
    from checkrein.doors.library.gate import Gate


def bare(
    gate: Gate,
    spec: Spec | str,
    arguments: dict[str, Any],
    run: Callable[[dict[str, Any]], Any],
    *,
    may_wait: bool,
    call_id: str = "",
) -> tuple[Turn, Any]:
    """A new call, and what its program wishes for it."""
    made = gate.spec(spec) if isinstance(spec, str) else spec
    opaque: list[str] = []
    call = gate.tool_call(made, plain_arguments(arguments, opaque), call_id)

    def prepare(changed: dict[str, Any] | None) -> Callable[[], Any]:
        return partial(run, arguments if changed is None else changed)

    def now() -> dict[str, Any]:
        found: dict[str, Any] = steady(arguments)
        return found

    turn = Turn(gate.authority, made.manner, call, prepare, opaque=opaque, now=now)
    turn.waited = made.wishes.looks
    return turn, gate.wish(made, call, arguments, may_wait=may_wait)


def bare_again(
    gate: Gate, found: Pending, data: Any, run: Callable[[dict[str, Any]], Any], spec: Spec | None
) -> Steps:
    """A call that waited, going on."""
    manner = spec.manner if spec is not None else gate.manner
    manner = msgspec.structs.replace(manner, phase=found.phase)
    turn = Turn(gate.authority, manner, found.call, lambda changed: partial(run, changed or {}))
    return turn.again(found, data)


def never(_arguments: dict[str, Any]) -> Any:
    """Stands for running a call that is only decided here."""
    raise InputError("This call is carried out elsewhere.")
