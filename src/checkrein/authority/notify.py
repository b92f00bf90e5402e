"""Notifications: a person tries whether they arrive."""

from __future__ import annotations

import threading
import time
from typing import Any

from checkrein.approval.channels import Channel, Notice
from checkrein.approval.channels.notify import channels_of, tried
from checkrein.authority import Asked, Params, verb

_SECONDS = 20.0
_TRIAL = Notice(
    "test",
    "Checkrein can reach you",
    "This is a trial. Questions come this way, with what an agent wants to run and how to answer.",
)


@verb("notify.test", person=True)
def test(asked: Asked, params: Params) -> list[dict[str, Any]]:  # noqa: ARG001
    """A trial notice through every channel, once: which arrived, and why the others did not."""
    notify = asked.pipeline.policies.of("").settings.notify
    trials = [_Trial(channel) for channel in channels_of(notify)]
    for each in trials:
        each.start()
    deadline = time.monotonic() + _SECONDS
    for each in trials:
        each.join(max(0.0, deadline - time.monotonic()))
    return [
        {"channel": each.channel.name, "ok": not each.trouble, "trouble": each.trouble} for each in trials
    ]


# A verb is no test of ours.
test.__test__ = False  # type: ignore[attr-defined]


class _Trial(threading.Thread):
    """One channel, tried without holding up the others."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(name="checkrein-notify-trial", daemon=True)
        self.channel, self.trouble = channel, "no answer in time"

    def run(self) -> None:
        self.trouble = str(tried(self.channel, _TRIAL) or "")
