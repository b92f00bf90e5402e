"""What a chat needs of whoever has the tools. The server hands it over; this door knows no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from checkrein.call import ToolCall

Facts = dict[str, Any]


class Tool(Protocol):
    """A tool a person accepted. `definition` is the hash of what they accepted.

    `annotations` are what a call is judged with.
    """

    @property
    def name(self) -> str: ...
    @property
    def server(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Facts: ...
    @property
    def annotations(self) -> Facts: ...
    @property
    def definition(self) -> str: ...
    @property
    def trusted(self) -> bool: ...


class Came(Protocol):
    """What came of a call: `result`, `error`, or why there is none (`unsent`, `input`, `silent`, `lost`).

    `unsent`: nothing ran. `silent` and `lost`: nobody knows whether it took effect. `input`: it ended because
    its server wanted to ask somebody.
    """

    @property
    def kind(self) -> str: ...
    @property
    def content(self) -> Any: ...
    @property
    def text(self) -> str: ...
    @property
    def failed(self) -> bool: ...


class Tools(Protocol):
    """Every method may be awaited on any loop."""

    async def tools(self, project: str = ...) -> list[Any]: ...
    async def tool(self, name: str) -> Any: ...
    async def faults(self, name: str, arguments: Facts) -> list[str]: ...
    async def carry(
        self, call: ToolCall, name: str, entry: str, *, progress: Callable[[str], None]
    ) -> Any: ...
    async def resources(self, session: str = ...) -> list[Facts]: ...
    async def read(self, server: str, uri: str, session: str = ...) -> Facts: ...
    async def templates(self, session: str = ...) -> list[Facts]: ...
    async def read_filled(
        self, server: str, template: str, arguments: Facts, session: str = ...
    ) -> Facts: ...
    async def prompts(self) -> list[Facts]: ...
    async def prompt(self, server: str, name: str, arguments: Facts, session: str = ...) -> Facts: ...
    async def servers(self) -> list[Facts]: ...


def turned_on(offered: Iterable[Any], off: Iterable[str]) -> list[Any]:
    """Without what is turned off: servers and tools, by name."""
    names = set(off)
    return [each for each in offered if each.server not in names and each.name not in names]


class NoTools:
    """Where there is no gateway: a chat without tools."""

    async def tools(self, project: str = "") -> list[Tool]:  # noqa: ARG002
        return []

    async def tool(self, name: str) -> str:  # noqa: ARG002
        return "There are no tools here."

    async def faults(self, name: str, arguments: Facts) -> list[str]:  # noqa: ARG002
        return []

    async def carry(
        self,
        call: ToolCall,
        name: str,
        entry: str,
        *,
        progress: Callable[[str], None],
    ) -> Any:
        raise NotImplementedError

    async def resources(self, session: str = "") -> list[Facts]:  # noqa: ARG002
        return []

    async def read(self, server: str, uri: str, session: str = "") -> Facts:
        raise NotImplementedError

    async def templates(self, session: str = "") -> list[Facts]:  # noqa: ARG002
        return []

    async def read_filled(self, server: str, template: str, arguments: Facts, session: str = "") -> Facts:
        raise NotImplementedError

    async def prompts(self) -> list[Facts]:
        return []

    async def prompt(self, server: str, name: str, arguments: Facts, session: str = "") -> Facts:
        raise NotImplementedError

    async def servers(self) -> list[Facts]:
        return []
