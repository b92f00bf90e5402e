"""For tests of programs that use a Gate: approvals answered by script, in a store that is thrown away.

`ScriptedGate` is a Gate; with pytest, `pytest_plugins = ["checkrein.testing"]` gives the fixture
`checkrein_gate`. No settings file of the user counts, and nobody is asked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from checkrein.call import split_name
from checkrein.doors.library.answers import Answer, said
from checkrein.doors.library.embedded import Embedded
from checkrein.doors.library.gate import Gate
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import Filter, entries
from checkrein.policy.patterns import pattern

NO_LINE = "no: no line of the script is about this call"
Line = Any


def edit(**changes: Any) -> Callable[[dict[str, Any]], Answer]:
    """A yes with some arguments changed."""
    return lambda question: Answer(edited={**question["arguments"], **changes})


class Script:
    """Answers questions: one answer for all, or by tool name or pattern; the first line that fits counts.

    An answer is "yes", "no: why", True, False, `edit(...)`, a function of the question, or a list of those
    for one call after another. What no line is about is a no, and is in `unexpected`.
    """

    def __init__(self, lines: Line | Mapping[str, Line] = NO_LINE) -> None:
        given = lines if isinstance(lines, Mapping) else {"*": lines}
        self._lines = [(pattern(name), _several(line)) for name, line in given.items()]
        self.asked: list[dict[str, Any]] = []
        self.unexpected: list[dict[str, Any]] = []

    def __call__(self, question: dict[str, Any]) -> Answer:
        self.asked.append(question)
        full = question["tool"]
        for name, answers in self._lines:
            if not name.matches(full) and not name.matches(split_name(full)[1]):
                continue
            if not answers:
                break
            # The last answer of a list stays.
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            return said(answer(question) if callable(answer) else answer)
        self.unexpected.append(question)
        return said(NO_LINE)

    @property
    def tools(self) -> list[str]:
        """The tools that were asked about, in order, without their servers."""
        return [split_name(each["tool"])[1] for each in self.asked]


def _several(line: Line) -> list[Line]:
    return list(line) if isinstance(line, Sequence) and not isinstance(line, str) else [line]


class ScriptedGate(Gate):
    """A Gate in a folder of its own that is gone when it is closed; its script answers everything."""

    def __init__(
        self,
        lines: Line | Mapping[str, Line] = NO_LINE,
        *,
        folder: Path | None = None,
        settings: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.script = lines if isinstance(lines, Script) else Script(lines)
        self._folder = tempfile.TemporaryDirectory(prefix="checkrein-") if folder is None else None
        place = folder if folder is not None else Path(self._folder.name if self._folder else "")
        self._store = Embedded(place, settings=settings, alone=True)
        super().__init__(authority=self._store, answer_with=self.script, **options)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Every question so far."""
        return self.script.asked

    def entries(self) -> list[Entry]:
        """Every call so far as the record has it, oldest first."""
        self.flush()
        return list(entries(self._store.pipeline.store, Filter()))[::-1]

    def close(self) -> None:
        super().close()
        if self._folder is not None:
            self._folder.cleanup()


try:
    import pytest
except ImportError:  # pragma: no cover - the classes work without it
    pass
else:

    @pytest.fixture
    def checkrein_gate(tmp_path: Path) -> Iterator[Callable[..., ScriptedGate]]:
        """Makes gates that answer by script: `checkrein_gate({"delete_*": "no: keep it", "*": "yes"})`."""
        made: list[ScriptedGate] = []

        def make(lines: Line | Mapping[str, Line] = NO_LINE, **options: Any) -> ScriptedGate:
            options.setdefault("folder", tmp_path / f"checkrein-gate-{len(made)}")
            made.append(ScriptedGate(lines, **options))
            return made[-1]

        yield make
        for each in made:
            each.close()
