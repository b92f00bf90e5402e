"""Plain MCP client sessions: `call_tool` is judged, everything else goes through as it is.

Works over `mcp.ClientSession` and `mcp.Client`; who opened the session closes it.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import ClientSession

from checkrein.call import digest
from checkrein.doors.library.adapters import HandedOn
from checkrein.doors.library.denial import Denied
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.errors import InputError

# A server's word about its tools; anything else it puts there is not passed on.
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# Ways around the gate.
_UNGATED = frozenset({"send_request", "session"})
_MOST_PAGES = 100


class GatedSession:
    """A session whose tool calls go through the gate."""

    def __init__(
        self, gate: Gate, session: Any, *, server: str | None, trusted: bool = False, **options: Any
    ) -> None:
        """`server`: what rules call it. `trusted`: a person vouches for what it says about its tools.

        Other options are those of `gate.tool`. A refusal is an error result the model reads, unless
        `denials="raise"`. A call that is asked about waits where the gate says `asks="wait"`; otherwise
        `Suspended` is raised.
        """
        self._gate, self._session, self._server, self._trusted = gate, session, server, trusted
        self._raises = options.pop("denials", "return") == "raise"
        asks = options.pop("asks", None) or gate.manner.asks
        asks = "wait" if asks == "wait" else "raise"
        self._options = {"failed": _failed, **options, "asks": asks, "denials": "raise"}
        self._tools: dict[str, types.Tool] = {}

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *rest: Any, **more: Any
    ) -> Any:
        """As the session's own, where it may run."""
        spec = await self._spec(name)

        async def run(given: dict[str, Any]) -> Any:
            return await self._called(name, given, *rest, **more)

        return await self._heard(self._gate.call_async(spec, dict(arguments or {}), run))

    async def resume(self, waiting: Pending | str | bytes | dict[str, Any], **more: Any) -> Any:
        """Go on with a call that waits, also over another session in another process; twice, it runs once."""
        found = pending(waiting)
        spec = await self._spec(found.call.tool, anew=True)
        # INVARIANT: a yes to a tool is no yes to what its server has made of it since.
        if (found.call.server, found.call.definition) != (self._server, spec.definition):
            raise InputError(
                f"{found.call.name} is not the tool a person was asked about any more.",
                remedy="Make the call again.",
            )

        async def run(given: dict[str, Any]) -> Any:
            return await self._called(found.call.tool, given, **more)

        return await self._heard(self._gate.resume_async(found, run=run, spec=spec))

    async def list_tools(self, **more: Any) -> types.ListToolsResult:
        listed: types.ListToolsResult = await self._session.list_tools(**more)
        self._tools.update({each.name: each for each in listed.tools})
        return listed

    def __getattr__(self, name: str) -> Any:
        if name in _UNGATED:
            # INVARIANT: nothing here leads past the gate by accident.
            raise AttributeError(f"`{name}` would lead past the gate; use the session itself if you mean to.")
        return getattr(self._session, name)

    async def _called(self, name: str, arguments: dict[str, Any], *rest: Any, **more: Any) -> Any:
        result = await self._session.call_tool(name, arguments, *rest, **more)
        if not isinstance(result, types.CallToolResult):
            # The server wants something first, or answers later: nothing is earned by that.
            raise HandedOn(result)
        return result

    async def _heard(self, coming: Any) -> Any:
        try:
            result = await coming
        except HandedOn as handed:
            return handed.value
        except Denied as denied:
            if self._raises:
                raise
            return _text(denied.text, failed=True)
        # A person can answer for the tool.
        return _text(result, failed=False) if isinstance(result, str) else result

    async def _spec(self, name: str, *, anew: bool = False) -> Spec:
        if anew or name not in self._tools:
            self._tools.pop(name, None)
            await self._list_all()
        tool, hints = self._tools.get(name), dict[str, Any]()
        raw = tool.model_dump(mode="json", by_alias=True, exclude_none=True) if tool else None
        if raw is not None:
            hints = {hint: value for hint, value in (raw.get("annotations") or {}).items() if hint in _HINTS}
        return self._gate.spec(
            name,
            server=self._server,
            annotations={**hints, "pinned": True} if self._trusted else hints,
            definition=digest(raw) if raw is not None else "",
            **self._options,
        )

    async def _list_all(self) -> None:
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            if isinstance(self._session, ClientSession):
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                listed = await self.list_tools(params=params)
            else:
                listed = await self.list_tools(cursor=cursor)
            cursor = listed.next_cursor
            if not cursor:
                return


def _failed(result: Any) -> bool:
    return bool(result.is_error)


def _text(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)
