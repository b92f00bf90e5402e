"""What can be asked of chat: one table of verbs, each with its parameters and one sentence.

`authority.chat` makes verbs of it, the HTTP API its routes and its description.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from checkrein.asking import Remember

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Text = Annotated[str, Meta(max_length=4_000_000)]
Label = Annotated[str, Meta(max_length=500)]
Count = Annotated[int, Meta(ge=1, le=1_000)]
# The longest a request waits for events; whoever asks gives up a little later.
LONGEST_WAIT = 25.0


class Given(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Parameters of a request. What is not known is refused, not dropped."""


class Nothing(Given):
    pass


class Start(Given):
    """The session to go on with; without one a new one is made."""

    session: Annotated[str, Meta(max_length=128)] = ""
    resource: Label = ""


class Sessions(Given):
    archived: bool = False
    limit: Count = 100
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0


class Create(Given):
    title: Label = ""
    model: Label = ""
    project: Annotated[str, Meta(max_length=4_096)] = ""
    system: Annotated[str, Meta(max_length=200_000)] = ""


class Opened(Given):
    """The newest messages of the shown branch; `before` is the id of a message to look back from."""

    id: Id
    before: Annotated[str, Meta(max_length=128)] = ""
    limit: Count = 100


class Update(Given):
    """What is not given stays as it is; null gives a limit back to the settings."""

    id: Id
    title: Label | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    color: Annotated[str, Meta(max_length=40)] | UnsetType = UNSET
    provider: Label | UnsetType = UNSET
    model: Label | UnsetType = UNSET
    project: Annotated[str, Meta(max_length=4_096)] | UnsetType = UNSET
    system: Annotated[str, Meta(max_length=200_000)] | UnsetType = UNSET
    tools_off: Annotated[list[Label], Meta(max_length=5_000)] | UnsetType = UNSET
    threshold: Annotated[float, Meta(gt=0, le=1)] | UnsetType | None = UNSET
    retention_tokens: Annotated[int, Meta(ge=0, le=100_000_000)] | UnsetType | None = UNSET
    auto_compress: bool | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Named(Given):
    id: Id


class Search(Given):
    query: Annotated[str, Meta(max_length=1_000)]
    limit: Count = 50


class Attachment(Given):
    """A file (`name`, `mime_type`, `data` in base64), a server's resource (`server`, `uri`, or `server`,
    `template`, `arguments`), or what one of its prompts says (`server`, `prompt`, `arguments`).
    """

    name: Label = ""
    mime_type: Annotated[str, Meta(max_length=200)] = ""
    data: str | None = None
    server: Label = ""
    uri: Annotated[str, Meta(max_length=8_192)] = ""
    template: Annotated[str, Meta(max_length=8_192)] = ""
    prompt: Label = ""
    arguments: dict[str, str] = {}

    def __post_init__(self) -> None:
        of_server = [bool(self.uri), bool(self.template), bool(self.prompt)]
        if [self.data is not None, *of_server].count(True) != 1:
            raise ValueError("an attachment has one of `data`, `uri`, `template` and `prompt`")
        if any(of_server) and not self.server:
            raise ValueError("an attachment of a server names the `server`")


class Send(Given):
    session: Id
    text: Text
    attachments: Annotated[list[Attachment], Meta(max_length=50)] = []
    model: Label = ""


class Regenerate(Given):
    """Another answer to what `message` answered; without one, to what was said last."""

    session: Id
    message: Annotated[str, Meta(max_length=128)] = ""
    model: Label = ""


class Edit(Given):
    session: Id
    message: Id
    text: Text


class Choose(Given):
    session: Id
    message: Id


class OfRun(Given):
    run: Id


class Approve(Given):
    """`edited`: run it with other arguments, judged as well. `remember`: how far the yes reaches."""

    run: Id
    call: Id
    edited: dict[str, Any] | None = None
    remember: Remember | None = None
    reason: Annotated[str, Meta(max_length=10_000)] = ""


class Decline(Given):
    """The model is told the reason."""

    run: Id
    call: Id
    reason: Annotated[str, Meta(max_length=10_000)] = ""


class Events(Given):
    """What happened after the event with this id; waits up to `wait` seconds for something to happen."""

    session: Id
    after: Annotated[str, Meta(max_length=64)] = ""
    wait: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] = 0.0


class Tokens(Given):
    """`input`: what a person is about to say."""

    session: Id
    input: Text = ""
    model: Label = ""


class Compress(Given):
    session: Id
    retention: Annotated[int, Meta(ge=0, le=100_000_000)] | None = None


class OfSession(Given):
    session: Id


class Provider(Given):
    """What is not given stays as it is. The key goes to the key store; no answer ever shows it."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    kind: Literal["openai", "anthropic", "google", "azure", "compatible"] | UnsetType = UNSET
    base_url: Annotated[str, Meta(max_length=2_048)] | UnsetType = UNSET
    key: Annotated[str, Meta(max_length=10_000)] | UnsetType = UNSET
    api_version: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    models: Annotated[list[Label], Meta(max_length=2_000)] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    default_model: Label | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"


class OfProvider(Given):
    name: Annotated[str, Meta(min_length=1, max_length=64)]


class Default(Given):
    model: Annotated[str, Meta(max_length=500)]


class Export(Given):
    id: Id
    form: Literal["json", "markdown"] = "json"


class Import(Given):
    text: str
    form: Literal["json", "markdown"] = "json"


class Request(msgspec.Struct, frozen=True):
    """A verb: its parameters, what it does; `told` says what it hears about who asks."""

    params: type[Given]
    summary: str
    told: tuple[Literal["actor", "channel"], ...] = ()
    person: bool = True


_WHO: tuple[Literal["actor", "channel"], ...] = ("actor",)
_WHO_AND_HOW: tuple[Literal["actor", "channel"], ...] = ("actor", "channel")

REQUESTS: dict[str, Request] = {
    "status": Request(Nothing, "Whether a model can answer, and which.", person=False),
    "start": Request(Start, "Open a session, or make one, with what was said in it."),
    "sessions": Request(Sessions, "Sessions, pinned ones first, then the newest."),
    "create": Request(Create, "Make a session."),
    "session": Request(Opened, "A session with its newest messages, and the run that is under way."),
    "update": Request(Update, "Rename, pin, archive a session, or change what holds for it."),
    "delete": Request(Named, "Delete a session with all its messages. The record of its calls stays."),
    "search": Request(Search, "Find words in titles and messages."),
    "send": Request(Send, "Say something; the answer comes as events."),
    "regenerate": Request(Regenerate, "Have the model answer again, beside the answer there is."),
    "edit": Request(Edit, "Say something else in place of an earlier message, beside it."),
    "choose": Request(Choose, "Show the branch that a message belongs to."),
    "abort": Request(OfRun, "Stop a run; what had come until then is kept.", _WHO),
    "approve": Request(Approve, "Say yes to a tool call that waits.", _WHO_AND_HOW),
    "decline": Request(Decline, "Say no to a tool call that waits.", _WHO_AND_HOW),
    "events": Request(Events, "What happened since an event, waiting a while for it."),
    "tokens": Request(Tokens, "How much of the model's context is used, and by what."),
    "preview": Request(Compress, "What compressing would do, in numbers. Changes nothing."),
    "compress": Request(Compress, "Put a summary in the place of older messages."),
    "models": Request(Nothing, "Every model that can be picked."),
    "providers": Request(Nothing, "Configured providers of models, without their keys."),
    "provider_set": Request(Provider, "Add or change a provider.", _WHO),
    "provider_remove": Request(OfProvider, "Remove a provider and its key.", _WHO),
    "provider_test": Request(OfProvider, "See whether a provider answers."),
    "provider_refresh": Request(OfProvider, "Ask a provider which models it has."),
    "default": Request(Default, "Set the model new sessions begin with.", _WHO),
    "tools": Request(OfSession, "The tools of a session by server, and what the rules say about each."),
    "resources": Request(Nothing, "Resources of servers that can be attached."),
    "templates": Request(Nothing, "Resources of servers that can be attached once they are told which."),
    "prompts": Request(Nothing, "Prompts of servers that can be attached."),
    "export": Request(Export, "A session as a text."),
    "import": Request(Import, "Make a session of a text that was exported."),
}
