"""What policy says today about a tool of a server that nobody has called; recorded nowhere.

`authority.upstream` asks when somebody browses what the running servers have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from checkrein.authority import Asked
from checkrein.call import ToolCall, reason_lines
from checkrein.errors import CheckreinError
from checkrein.settings.servers import ServerSpec

Facts = dict[str, Any]


def verdict_today(asked: Asked, tool: Facts, servers: Mapping[str, ServerSpec], project: str) -> Facts:
    """The verdict a call without arguments would get; it is recorded nowhere."""
    server = str(tool.get("server", ""))
    # INVARIANT: only a person's word makes a server's hints count, never a hint of its own.
    hints = {key: value for key, value in _hints(tool).items() if key != "pinned"}
    if server in servers and servers[server].trusted:
        hints["pinned"] = True
    call = ToolCall(
        tool=str(tool.get("tool", "")), server=server, door="gateway", project=project, annotations=hints
    )
    try:
        verdict = asked.pipeline.judge(call).verdict
    except Exception as error:  # noqa: BLE001 - what cannot be judged is refused, here as in a call
        why = (
            str(error)
            if isinstance(error, CheckreinError)
            else f"It cannot be judged: {type(error).__name__}."
        )
        return {"verdict": "deny", "decided_by": "error", "reasons": [why], "risk": "critical"}
    return {
        "verdict": verdict.word,
        "decided_by": f"rule {verdict.rule}" if verdict.rule else verdict.stage,
        "reasons": reason_lines(verdict.reasons),
        "risk": verdict.risk.category.name,
    }


def _hints(tool: Facts) -> Facts:
    """What it says of itself; where it is not offered yet, by the text people are shown."""
    found = tool.get("annotations") or {}
    if not found:
        try:
            found = msgspec.json.decode(str(tool.get("shown", ""))).get("annotations")
        except (msgspec.MsgspecError, AttributeError, UnicodeEncodeError, RecursionError):
            found = {}
    return dict(found) if isinstance(found, dict) else {}
