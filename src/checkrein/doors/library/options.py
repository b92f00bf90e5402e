"""What a program says of a tool when it wraps it: the options of `gate.tool`, read into a `Spec`. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from checkrein.call import split_name
from checkrein.doors.library.manner import Asks, Denials, Manner
from checkrein.doors.library.tools import Spec, server_for
from checkrein.doors.library.wishes import Needs, ToolRule, Wishes, tool_rules
from checkrein.errors import InputError

# A server that was not named at all; None says that the tool has none.
UNSET: Any = object()


def spec_of(
    name: str,
    manner: Manner,
    tools_of: str,
    *,
    server: str | None = UNSET,
    needs_approval: Needs = None,
    require_approval: Needs = None,
    idempotent: bool = False,
    rules: Iterable[Mapping[str, Any] | ToolRule] = (),
    default_auto_approve: bool | None = None,
    asks: Asks | None = None,
    denials: Denials | None = None,
    annotations: Mapping[str, Any] | None = None,
    definition: str = "",
    suspend_schema: Any = None,
    resume_schema: Any = None,
    failed: Callable[[Any], bool] | None = None,
) -> Spec:
    """`manner` and `tools_of` are the gate's, for what the options leave open."""
    if not name or not isinstance(name, str):
        raise InputError("A tool needs a name.", remedy='Say which: gate.tool(name="...").')
    where, tool = split_name(name)
    # INVARIANT: what is said to be one server's tool takes no name of another's.
    if where is not None and isinstance(server, str) and server != where:
        raise InputError(
            f"{name} is no name for a tool of {server}.", remedy=f"Name it without mcp__{where}."
        )
    if where is None:
        where = server_for(name, tools_of) if server is UNSET else server
    chosen = msgspec.structs.replace(
        manner,
        asks=asks or manner.asks,
        denials=denials or manner.denials,
        idempotent=idempotent,
        says=suspend_schema,
        hears=resume_schema,
        failed=failed,
    )
    needs = tuple(each for each in (needs_approval, require_approval) if each is not None)
    wishes = Wishes(needs, tool_rules(rules), default_auto_approve)
    return Spec(
        name=tool,
        server=where,
        wishes=wishes,
        manner=chosen,
        annotations=dict(annotations or {}),
        definition=definition,
    )
