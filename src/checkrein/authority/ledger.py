"""The record: signing it as it is, for a copy that is kept elsewhere."""

from __future__ import annotations

from typing import Any

from checkrein.authority import Asked, Params, verb
from checkrein.errors import NotFoundError
from checkrein.store import records


@verb("ledger.checkpoint", person=False)
def checkpoint(asked: Asked, params: Params) -> dict[str, Any]:  # noqa: ARG001
    """The newest signed checkpoint, after the head was signed."""
    asked.pipeline.store.write(asked.pipeline.ledger.checkpoint, durable=True)
    last = records.last_checkpoint(asked.pipeline.store)
    if last is None:
        raise NotFoundError("Nothing has been recorded yet.")
    return {"body": last[1], "signature": last[2]}
