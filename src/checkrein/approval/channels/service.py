"""A service Apprise knows (desktop, Slack, Telegram, mail); Apprise is loaded when one is first used."""

from __future__ import annotations

import importlib.util
import logging
import threading
import warnings
from typing import Any

from checkrein.approval.channels import Notice, Undelivered
from checkrein.settings.addresses import masked

MISSING = "Apprise is not installed: install `checkrein[notify]`"
_loading = threading.Lock()
_PACKAGE = "apprise"


def is_installed() -> bool:
    """Whether services can be used at all; loads nothing."""
    return importlib.util.find_spec(_PACKAGE) is not None


class Service:
    """One Apprise URL."""

    def __init__(self, url: str) -> None:
        self.name, self._url = masked(url), url
        self._opened: Any = None

    def deliver(self, notice: Notice) -> None:
        opened = self._opened or self._open()
        try:
            # As text: a service that shows markup gets it escaped.
            done = opened.notify(body=notice.body, title=notice.title, body_format="text")
        except Exception as error:  # noqa: BLE001 - a service's code is not ours
            raise Undelivered(f"it failed: {type(error).__name__}") from None
        if not done:
            raise Undelivered("the service did not take it")

    def _open(self) -> Any:
        # One at a time, and without its warnings: loading goes through every service there is.
        with _loading, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import apprise
            except ImportError:
                raise Undelivered(MISSING, lasting=True) from None
            # Its own log would quote addresses and texts.
            logging.getLogger(_PACKAGE).setLevel(logging.CRITICAL + 1)
            # INVARIANT: nothing in a notice is interpreted, neither escapes nor emoji names.
            asset = apprise.AppriseAsset(
                async_mode=False, interpret_escapes=False, interpret_emojis=False, app_id="checkrein"
            )
            opened = apprise.Apprise(asset=asset)
            if not opened.add(self._url):
                raise Undelivered("Apprise does not understand this URL", lasting=True)
        self._opened = opened
        return opened
