"""Loads what talks to models. It takes about a second: a thread does it, best before anybody waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkrein.errors import InputError

if TYPE_CHECKING:
    from checkrein.doors.chat.providers.clients import Clients

INSTALL = "Install them with `pip install 'checkrein[chat]'`."


def clients() -> Clients:
    try:
        from checkrein.doors.chat.providers.clients import Clients
    except ImportError as error:
        raise InputError(
            f"Models need parts that are not installed ({error.name}).", remedy=INSTALL
        ) from None
    return Clients()


def prepare() -> None:
    """What is else built with the first answer: the counting of tokens, and how a response is kept."""
    from pydantic_ai.messages import ModelResponse, TextPart

    from checkrein.doors.chat import history, tokens

    # Of several tokens: the greater part is only built for those.
    tokens.count("/say we are ready, whoever you are")
    history.raw_of(ModelResponse(parts=[TextPart("ready")]))
