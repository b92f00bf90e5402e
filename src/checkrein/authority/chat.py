"""Conversations with models: a person begins, continues, searches and shapes them and answers for calls.

The console, the HTTP API and `checkrein chat` ask. What each request is and takes: `chat_requests`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from checkrein.asking import Remember
from checkrein.authority import Asked, Params, not_understood, verb
from checkrein.authority.chat_requests import REQUESTS, Given, Request
from checkrein.errors import InputError

Facts = dict[str, Any]
# How things are where no server runs.
_NOBODY = {"ready": False, "provider": "", "model": "", "reason": "No server is running."}


class Event(Protocol):
    """Something that happened in a session; `id` is where a lost line goes on."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def data(self) -> Facts: ...


class Line(Protocol):
    """Somebody who follows a session. Both methods may be called from any thread."""

    def take(self) -> list[Any]: ...
    def close(self) -> None: ...


class Chat(Protocol):
    """The running chat, as other threads see it. Each method waits for its answer, which is JSON.

    `update` and `provider_set` get only what is to change. Attachments are those of `chat_requests`, as JSON.
    `subscribe` calls `tell`, from any thread, when there is something to take: `Event`s.
    """

    def status(self) -> Facts: ...
    def start(self, *, session: str, resource: str) -> Facts: ...
    def sessions(self, *, archived: bool, limit: int, offset: int) -> Facts: ...
    def create(self, *, title: str, model: str, project: str, system: str) -> Facts: ...
    def session(self, *, id: str, before: str, limit: int) -> Facts: ...  # noqa: A002 - the word of the request
    def update(self, *, id: str, **changes: Any) -> Facts: ...  # noqa: A002 - as above
    def delete(self, *, id: str) -> Facts: ...  # noqa: A002 - as above
    def search(self, *, query: str, limit: int) -> list[Facts]: ...
    def send(self, *, session: str, text: str, attachments: list[Facts], model: str) -> Facts: ...
    def regenerate(self, *, session: str, message: str, model: str) -> Facts: ...
    def edit(self, *, session: str, message: str, text: str) -> Facts: ...
    def choose(self, *, session: str, message: str) -> Facts: ...
    def abort(self, *, run: str, actor: str) -> Facts: ...
    def approve(
        self,
        *,
        run: str,
        call: str,
        edited: Facts | None,
        remember: Remember | None,
        reason: str,
        actor: str,
        channel: str,
    ) -> Facts: ...
    def decline(self, *, run: str, call: str, reason: str, actor: str, channel: str) -> Facts: ...
    def events(self, *, session: str, after: str, wait: float) -> Facts: ...
    def tokens(self, *, session: str, input: str, model: str) -> Facts: ...  # noqa: A002 - as above
    def preview(self, *, session: str, retention: int | None) -> Facts: ...
    def compress(self, *, session: str, retention: int | None) -> Facts: ...
    def models(self) -> list[Facts]: ...
    def providers(self) -> list[Facts]: ...
    def provider_set(self, *, name: str, actor: str, **changes: Any) -> Any: ...
    def provider_remove(self, *, name: str, actor: str) -> Any: ...
    def provider_test(self, *, name: str) -> Facts: ...
    def provider_refresh(self, *, name: str) -> Any: ...
    def default(self, *, model: str, actor: str) -> Any: ...
    def tools(self, *, session: str) -> list[Facts]: ...
    def resources(self) -> list[Facts]: ...
    def templates(self) -> list[Facts]: ...
    def prompts(self) -> list[Facts]: ...
    def export(self, *, id: str, form: str) -> Facts: ...  # noqa: A002 - as above
    def import_(self, *, text: str, form: str) -> Facts: ...
    def subscribe(self, session: str, after: str, tell: Callable[[], None]) -> Line: ...


def chat_of(asked: Asked) -> Chat:
    if asked.chat is None:
        raise InputError("This needs the running server.", remedy="Run `checkrein up`.")
    return asked.chat()


def _offer(name: str, request: Request) -> None:
    """Make a verb of a request: its parameters are checked, then the chat's method of that name is called."""
    method = f"{name}_" if name == "import" else name

    def do(asked: Asked, params: Params) -> Any:
        try:
            given = msgspec.convert(params, request.params)
        except (msgspec.MsgspecError, ValueError) as error:
            raise not_understood(f"chat.{name}", error) from error
        if asked.chat is None and not request.person:
            return dict(_NOBODY)
        told = {each: getattr(asked, each) for each in request.told}
        return getattr(chat_of(asked), method)(**_arguments(given), **told)

    verb(f"chat.{name}", person=request.person, checks=True)(do)


def _arguments(given: Given) -> dict[str, Any]:
    """What was given, by name: what the chat keeps as JSON as JSON, everything else as it is."""
    found = {name: getattr(given, name) for name in given.__struct_fields__}
    if "attachments" in found:
        found["attachments"] = msgspec.to_builtins(found["attachments"])
    return {name: value for name, value in found.items() if value is not UNSET}


for _name, _request in REQUESTS.items():
    _offer(_name, _request)
