"""The functions a gate wraps, by the names their calls have. `Gate` asks who goes on with a waiting call."""

from __future__ import annotations

from checkrein.call import ToolCall
from checkrein.doors.library.tools import Tool
from checkrein.errors import InputError, NotFoundError


class Toolbox:
    """The last function wrapped under each name, and the names that several functions have."""

    def __init__(self) -> None:
        self._tools = dict[tuple[str | None, str], Tool]()
        self._shared = set[tuple[str | None, str]]()

    def add(self, tool: Tool) -> None:
        named = tool.spec.server, tool.spec.name
        if named in self._tools and not tool.is_same(self._tools[named]):
            self._shared.add(named)
        self._tools[named] = tool

    def find(self, call: ToolCall) -> Tool:
        """The one function that goes on with this call."""
        tool = self._tools.get((call.server, call.tool))
        if tool is None:
            raise NotFoundError(f"This gate wraps no tool {call.name}.", remedy="Wrap it first.")
        # INVARIANT: a yes to one function runs no other of the same name.
        if (call.server, call.tool) in self._shared:
            why = f"Several functions are wrapped as {call.name}."
            raise InputError(why, remedy="Name each as its own, or say which: gate.resume(..., run=...).")
        return tool
