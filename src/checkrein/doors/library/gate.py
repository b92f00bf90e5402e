"""`Gate`: what a Python program wraps its tools with.

The way of a call is in `turn`; nothing here decides anything.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

import msgspec

from checkrein.asking import Remember
from checkrein.authority.library import DOOR
from checkrein.authority.wish import Wish
from checkrein.call import ToolCall
from checkrein.core.decision import Decided
from checkrein.doors.library.answers import said
from checkrein.doors.library.arguments import plain
from checkrein.doors.library.authority import Authority, of_its_own, of_the_user
from checkrein.doors.library.bare import bare, bare_again, never
from checkrein.doors.library.denial import Denied
from checkrein.doors.library.driving import drive, drive_async
from checkrein.doors.library.manner import Asks, Denials, Manner
from checkrein.doors.library.options import UNSET, spec_of
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.toolbox import Toolbox
from checkrein.doors.library.tools import Spec, Tool
from checkrein.doors.library.wishes import Needs, ToolRule, tool_rules
from checkrein.errors import InputError
from checkrein.ledger.record import new_id
from checkrein.settings.project import project_of

F = TypeVar("F", bound=Callable[..., Any])


class Run(msgspec.Struct, frozen=True):
    """One run of an agent: what holds for every call made in it."""

    session: str
    require_approval: bool = False


class Gate:
    """Judges every call of the tools it wraps. Close it, or use it in a `with` block."""

    def __init__(
        self,
        embedded: str | os.PathLike[str] | None = None,
        *,
        server: bool = False,
        agent: str = "python",
        project: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        session: str = "",
        tools_of: str = "python",
        phase: str = "building",
        asks: Asks = "wait",
        denials: Denials = "raise",
        answer_with: Callable[[dict[str, Any]], Any] | None = None,
        auto_resume: Callable[[Pending], Any] | None = None,
        settings: Sequence[str] = (),
        authority: Authority | None = None,
    ) -> None:
        """`embedded`: the folder of a store of its own. `server`: the user's running server instead.

        `asks`: wait for a person, or raise or return `Suspended`. `denials`: raise `Denied`, or return text
        the model reads. `tools_of`: the server name of tools that are given none. `cwd`: where tools find
        relative paths, if that is not where the program is.
        """
        if server and (embedded is not None or settings):
            raise InputError("A gate has a store of its own or uses the server's, not both.")
        self.agent, self.project = agent, project_of(project or Path.cwd())
        self.session = session or f"{agent}-{new_id(time.time())}"
        self._server, self._tools = tools_of, Toolbox()
        self.manner = Manner(
            phase=phase, asks=asks, denials=denials, answer_with=answer_with, auto_resume=auto_resume
        )
        self.authority: Authority = authority or (
            of_the_user(agent, self.session, self.project)
            if server
            else of_its_own(embedded, agent, settings)
        )
        self._run: contextvars.ContextVar[Run | None] = contextvars.ContextVar("checkrein_run", default=None)
        self._cwd = os.path.realpath(cwd) if cwd is not None else ""

    # -- wrapping ---------------------------------------------------------------------------------------

    def wrap(self, function: F, **options: Any) -> F:
        """The function, gated. Options are those of `tool`."""
        made: F = self.tool(**options)(function)
        return made

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str = "",
        server: str | None = ...,
        needs_approval: Needs = None,
        require_approval: Needs = None,
        idempotent: bool = False,
        rules: Iterable[Mapping[str, Any] | ToolRule] = (),
        default_auto_approve: bool | None = None,
        asks: Asks | None = None,
        denials: Denials | None = None,
        hidden: Sequence[str] = (),
        annotations: Mapping[str, Any] | None = None,
        definition: str = "",
        suspend_schema: Any = None,
        resume_schema: Any = None,
        failed: Callable[[Any], bool] | None = None,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """Gate a function: `@gate.tool`, or `@gate.tool(needs_approval=True)`.

        `needs_approval` and `require_approval` (two names for one thing): True, False or a function of the
        input. `idempotent`: running it twice does no harm. `hidden`: parameters that are no part of the call.
        """
        if function is not None:
            return self._wrapped(function)
        return lambda given: self._wrapped(given, **options)

    def wrap_tools(
        self,
        tools: Mapping[str, Callable[..., Any]],
        *,
        server: str | None = UNSET,
        rules: Iterable[Mapping[str, Any] | ToolRule] = (),
        default_auto_approve: bool = False,
        **options: Any,
    ) -> dict[str, Callable[..., Any]]:
        """Many tools by name, under rules of the program's own.

        `default_auto_approve` lets low and medium risk run that no rule names. The floor, the user's own
        rules and high risk still stop.
        """
        given = options | {"rules": tool_rules(rules), "default_auto_approve": default_auto_approve}
        return {
            name: self._wrapped(function, name=name, server=server, **given)
            for name, function in tools.items()
        }

    def spec(self, name: str, **options: Any) -> Spec:
        """A tool by name, for calls that no function of its own stands for; see `call` and `decide`."""
        return spec_of(name, self.manner, self._server, **options)

    def _wrapped(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        hidden = options.pop("hidden", ())
        name = options.pop("name", "") or getattr(function, "__name__", "")
        tool = Tool(self, function, self.spec(name, **options), hidden)
        self._tools.add(tool)
        return tool.wrapped()

    # -- a whole run ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def run(self, *, require_approval: bool = False, session: str = "") -> Iterator[Run]:
        """Everything called in the block belongs to one run; with `require_approval`, all of it asks."""
        outer = self._run.get()
        strict = require_approval or (outer is not None and outer.require_approval)
        made = Run(session or (outer.session if outer else self.session), strict)
        token = self._run.set(made)
        try:
            yield made
        finally:
            self._run.reset(token)

    # -- calls without a function -----------------------------------------------------------------------

    def call(
        self, spec: Spec | str, arguments: dict[str, Any], run: Callable[[dict[str, Any]], Any], **more: Any
    ) -> Any:
        """Gate one call: `run` gets the arguments, edited ones too, when it may run."""
        turn, wish = bare(self, spec, arguments, run, may_wait=False, **more)
        return drive(turn.fresh(wish))

    async def call_async(
        self, spec: Spec | str, arguments: dict[str, Any], run: Callable[[dict[str, Any]], Any], **more: Any
    ) -> Any:
        turn, wish = bare(self, spec, arguments, run, may_wait=True, **more)
        return await drive_async(turn.fresh(wish))

    def decide(self, spec: Spec | str, arguments: dict[str, Any], **more: Any) -> Decided:
        """The verdict alone, recorded; whoever carries the call out reports with `finish`."""
        turn, wish = bare(self, spec, arguments, never, may_wait=False, **more)
        try:
            return drive(turn.judged(wish))  # type: ignore[no-any-return]
        except Denied as denied:
            return Decided(denied.entry, denied.verdict)

    async def decide_async(self, spec: Spec | str, arguments: dict[str, Any], **more: Any) -> Decided:
        turn, wish = bare(self, spec, arguments, never, may_wait=True, **more)
        try:
            return await drive_async(turn.judged(wish))  # type: ignore[no-any-return]
        except Denied as denied:
            return Decided(denied.entry, denied.verdict)

    def finish(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        """What became of a call that was decided here and ran elsewhere."""
        self.authority.finish(entry, outcome, plain(output, []), evidence)

    # -- questions --------------------------------------------------------------------------------------

    def pending(self) -> list[dict[str, Any]]:
        """Every question that waits for an answer, oldest first."""
        return self.authority.questions()

    def answer(
        self,
        question: str | Pending | Mapping[str, Any],
        answer: Any = "yes",
        *,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str:
        """What a person said: `"yes"`, `"no: why"`, other arguments. What became of it.

        Only the program's own person answers here. The server's questions are answered in its inbox and
        console: it refuses an answer from the program that asks.
        """
        given = said(answer)
        call = question.call if isinstance(question, Pending) else None
        if isinstance(question, Pending):
            entry = question.entry
        else:
            entry = question if isinstance(question, str) else str(question["id"])
        return self.authority.answer(
            entry,
            given.answer,
            call=call,
            message=message or given.message,
            edited=edited if edited is not None else given.edited,
            remember=remember or given.remember,
            actor=actor,
        )

    def resume(
        self,
        waiting: Pending | str | bytes | dict[str, Any],
        data: Any = None,
        *,
        run: Callable[[dict[str, Any]], Any] | None = None,
        spec: Spec | None = None,
    ) -> Any:
        """Go on with a call that waits, here or in another process; twice, it runs once.

        `data` is what a tool that suspended itself is told. To be awaited where the tool is asynchronous.
        """
        found = self.waits(waiting)
        if run is not None:
            return drive(bare_again(self, found, data, run, spec))
        return self._tools.find(found.call).resumed(found, data)

    async def resume_async(
        self,
        waiting: Pending | str | bytes | dict[str, Any],
        data: Any = None,
        *,
        run: Callable[[dict[str, Any]], Any],
        spec: Spec | None = None,
    ) -> Any:
        """The same for a call that no function of its own stands for."""
        return await drive_async(bare_again(self, self.waits(waiting), data, run, spec))

    # -- what a call says of itself ---------------------------------------------------------------------

    def tool_call(self, spec: Spec, arguments: dict[str, Any], call_id: str = "") -> ToolCall:
        run = self._run.get()
        return ToolCall(
            tool=spec.name,
            server=spec.server,
            arguments=arguments,
            door=DOOR,
            agent=self.agent,
            user=self.authority.user,
            session=run.session if run else self.session,
            project=self.project,
            cwd=self.cwd,
            call_id=call_id,
            annotations=spec.annotations,
            definition=spec.definition,
        )

    @property
    def cwd(self) -> str:
        """Where tools find relative paths: where the program is now, unless it says otherwise."""
        return self._cwd or os.getcwd()  # noqa: PTH109 - for every call, and a Path costs more than the answer

    def waits(self, raw: Pending | str | bytes | dict[str, Any]) -> Pending:
        """A call that waits, where it can go on here."""
        found = pending(raw)
        # INVARIANT: a call that was judged in one folder does not run in another.
        if found.call.cwd != self.cwd:
            raise InputError(
                f"The call was judged in {found.call.cwd}, and the program is in {self.cwd} now.",
                remedy="Start it there, or give the gate that folder: Gate(cwd=...).",
            )
        return found

    def wish(self, spec: Spec, call: ToolCall, given: dict[str, Any], *, may_wait: bool) -> Any:
        run = self._run.get()
        if run is not None and run.require_approval:
            return Wish(hold="The program asks for a person's approval of everything in this run.")
        return spec.wishes.of(call.server, call.tool, given, may_wait=may_wait)

    def flush(self) -> None:
        """Put the outcomes of the last moment on the record; closing does so too."""
        self.authority.flush()

    def close(self) -> None:
        """Let go of the store; questions stay."""
        self.authority.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False
