"""What a Python script waits for: calls nobody answered, answers it did not take yet, sleeps.

Kept by the script's session, and put away with it. Knows the interpreter's numbers and no more of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from checkrein.errors import InputError
from checkrein.execute.python_failures import Fault
from checkrein.execute.python_interpreter import StoppedError
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_state import State
from checkrein.execute.python_values import settled
from checkrein.execute.python_words import Called, Event, Waiting
from checkrein.execute.sandbox import Answer, Wanted

NOTHING: dict[str, Any] = {"return_value": None}


class Pending:
    """Calls by their number. `still`: the one the script stands at until it is answered, because nothing else
    of it can run before."""

    def __init__(self, state: State | None = None) -> None:
        self.calls: dict[int, Wanted] = {each.id: each for each in state.waiting} if state else {}
        self.held: dict[int, dict[str, Any]] = dict(state.held) if state else {}
        self.sleeps: dict[int, float] = dict(state.sleeps) if state else {}
        self.still: int | None = state.still if state else None

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        return tuple(self.calls[number] for number in sorted(self.calls))

    def check(self, answers: Mapping[int, Answer]) -> None:
        """Raises InputError where nobody waits for one."""
        if not answers.keys() <= self.calls.keys():
            unknown = min(answers.keys() - self.calls.keys())
            raise InputError(f"Nobody waits for call {unknown}.")

    def take(self, answers: Mapping[int, Answer]) -> None:
        """Answers from outside, which were checked."""
        for number, answer in answers.items():
            self.held[number] = settled(self.calls.pop(number).name, answer)

    def taken(self, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The answers that are there for these, which are the script's then."""
        now = time.time()
        ready = {number: self.held[number] for number in numbers if number in self.held}
        ready |= {n: NOTHING for n in numbers if n in self.sleeps and self.sleeps[n] <= now}
        return self._handed_over(ready)

    def woken(self, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The same after the first sleep is over, however the clock was set meanwhile."""
        return self.taken(numbers) or self._handed_over({n: NOTHING for n in numbers if n in self.sleeps})

    def _handed_over(self, ready: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        for number in ready:
            self.held.pop(number, None)
            self.sleeps.pop(number, None)
        return ready

    def until_due(self, numbers: Sequence[int]) -> float:
        """Seconds to the end of the first sleep among these."""
        due = [self.sleeps[number] for number in numbers if number in self.sleeps]
        if not due:
            raise StoppedError(Fault("crash", "The script waits for something nobody was asked for."))
        return min(due) - time.time()

    def is_ours(self, at: Event | None, names: Names) -> bool:
        """Whether an interpreter back from bytes waits for what we know of, and nothing else."""
        if isinstance(at, Waiting):
            known = {*self.calls, *self.held, *self.sleeps}
            return self.still is None and known.issuperset(at.numbers)
        if not isinstance(at, Called) or at.owned or self.still is None or at.number != self.still:
            return False
        return names.is_call(at, self.calls.get(self.still))
