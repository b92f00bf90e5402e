"""Delivering without making anybody wait: an outlet is a channel with a short queue and a thread of its own.

A slow or broken channel holds up neither a verdict nor another channel.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from checkrein.approval.channels import Channel, Notice, Undelivered
from checkrein.approval.channels.service import MISSING, Service, is_installed
from checkrein.approval.channels.webhook import Webhook
from checkrein.settings import Notify

QUEUED = 32
RETRIES = (1.0, 5.0)
Say = Callable[[str], None]


def channels_of(notify: Notify) -> list[Channel]:
    """Every channel the settings name."""
    return [*map(Service, dict.fromkeys(notify.urls)), *map(Webhook, dict.fromkeys(notify.webhook_urls))]


def reaches(notify: Notify) -> bool:
    """Whether a question would be told to anybody."""
    # INVARIANT: nobody counts as reachable through a channel that cannot exist here.
    can = bool(notify.webhook_urls) or (bool(notify.urls) and is_installed())
    return can and "asked" in notify.events


def trouble_with(notify: Notify) -> str:
    """What keeps these settings from working at all, for the doctor."""
    return MISSING if notify.urls and not is_installed() else ""


class Outlet:
    """A channel, what waits for it, and how it went so far."""

    def __init__(self, channel: Channel, say: Say, retries: Iterable[float] = RETRIES) -> None:
        self.channel, self._say, self._retries = channel, say, tuple(retries)
        self._waiting: deque[Notice] = deque()
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent, self.lost, self.trouble = 0, 0, ""

    def put(self, notice: Notice) -> None:
        """Queue a notice; of too many the oldest is lost, which is said."""
        with self._changed:
            if len(self._waiting) >= QUEUED:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(notice)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkrein-notify-out", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self, seconds: float = 0.0) -> None:
        """Deliver no more; whoever is being talked to right now is not waited for longer than that."""
        self._over.set()
        with self._changed:
            thread = self._thread
            self._changed.notify()
        if thread is not None and seconds:
            thread.join(seconds)

    def state(self) -> dict[str, object]:
        return {
            "channel": self.channel.name,
            "sent": self.sent,
            "lost": self.lost,
            "waiting": len(self._waiting),
            "trouble": self.trouble,
        }

    def _run(self) -> None:
        while not self._over.is_set():
            with self._changed:
                while not self._waiting and not self._over.is_set():
                    self._changed.wait()
                if self._over.is_set():
                    return
                notice = self._waiting.popleft()
            self._deliver(notice)

    def _deliver(self, notice: Notice) -> None:
        for pause in (*self._retries, None):
            why = tried(self.channel, notice)
            if why is None:
                self.sent += 1
                if self.trouble:
                    self._say(f"notifications through {self.channel.name} work again")
                self.trouble = ""
                return
            if why.lasting or pause is None or self._over.wait(pause):
                break
        self.lost += 1
        # Said once, not for every notice. The journal never quotes a call.
        if self.trouble != str(why):
            self._say(f"a notification through {self.channel.name} was not delivered: {why}")
        self.trouble = str(why)


def tried(channel: Channel, notice: Notice) -> Undelivered | None:
    """Deliver once; why not, if not. Whatever a channel does, it ends here."""
    try:
        channel.deliver(notice)
    except Undelivered as error:
        return error
    except Exception as error:  # noqa: BLE001 - INVARIANT: a channel's failure is a line in the journal
        return Undelivered(f"it failed: {type(error).__name__}")
    return None
