"""Whose models a conversation may ask: which there are, which one is meant, and the model itself.

The agent asks for a model here before every request. Nothing here ever puts another model in the place of
the one that was picked. What is heavy is loaded in a thread, at the latest when a model is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.doors.chat.providers import loading
from checkrein.doors.chat.providers.troubles import Trouble, explain
from checkrein.errors import CheckreinError, ConfigError, InputError, NotFoundError
from checkrein.settings import Settings
from checkrein.settings.providers import (
    BUILT_IN,
    DEMO,
    ProvidersFile,
    ProviderSpec,
    is_literal,
    key_of,
    provider_spec,
    providers_file,
    read_providers,
    remove_provider,
    save_default,
    save_models,
    save_provider,
    stamp,
)
from checkrein.settings.sources import load, user_file

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from checkrein.doors.chat.providers.clients import Clients

__all__ = ["Picked", "ProviderError", "ProviderSpec", "Providers", "Trouble"]
_SEEN = "See `checkrein chat models` and `checkrein chat providers` for what there is."


class ProviderError(CheckreinError):
    """Raise when a provider of models does not do what it was asked for."""

    code = "provider.failed"


class ProviderSilentError(ProviderError):
    """Raise when a provider of models did not answer in time."""

    code = "provider.silent"


class Picked(msgspec.Struct, frozen=True):
    """The model that will answer."""

    provider: str
    model: str

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.model}"


class Providers:
    """The providers of the file, as it is now, and the built-in one. One event loop asks for models."""

    def __init__(self, settings: Callable[[], Settings] | None = None) -> None:
        self._settings = settings or _in_force
        self._clients: Clients | None = None
        self._loading: asyncio.Future[None] | None = None
        self._read: tuple[tuple[int, ...], ProvidersFile] | None = None

    def configs(self) -> list[ProviderSpec]:
        """Every provider; the built-in one is always there, last."""
        return [*self._file().providers.values(), BUILT_IN]

    def config(self, name: str) -> ProviderSpec:
        for spec in self.configs():
            if spec.name == name:
                return spec
        raise NotFoundError(f"There is no provider {name!r}.", remedy=self._fault() or _SEEN)

    def pick(self, ref: str = "") -> Picked:
        """The model a reference means: `PROVIDER/MODEL`, a model's name, or nothing for the usual one."""
        if ref := ref.strip():
            return self._named(ref)
        if usual := self._settings().chat.model or self._file().default:
            return self._named(usual)
        if fault := self._fault():
            # INVARIANT: no model answers in the place of one that is named where we cannot read.
            raise InputError(f"Which model is meant cannot be read: {fault}")
        return self._first()

    def _first(self) -> Picked:
        """The first model of the first provider that has one; the built-in one where there is no provider."""
        usable = [spec for spec in self._file().providers.values() if spec.enabled]
        for spec in usable:
            if spec.offered:
                return Picked(spec.name, spec.offered[0])
        if usable:
            # INVARIANT: the built-in model does not answer in the place of a provider somebody set up.
            name = usable[0].name
            raise InputError(
                f"The provider {name!r} has no models yet, and no other model is picked.",
                remedy=f"Run `checkrein chat providers refresh {name}`, name one with"
                f" `checkrein chat providers add {name} --no-key --model MODEL`, or pick demo/demo.",
            )
        return Picked(DEMO, DEMO)

    def models(self) -> list[dict[str, Any]]:
        """Every model that can be picked."""
        try:
            default = self.pick().ref
        except CheckreinError:
            default = ""
        return [
            {
                "ref": (ref := f"{spec.name}/{model}"),
                "provider": spec.name,
                "model": model,
                "kind": spec.kind,
                "default": ref == default,
            }
            for spec in self.configs()
            if spec.enabled
            for model in spec.offered
        ]

    def listed(self) -> list[dict[str, Any]]:
        """Every provider as it may be shown; a key is only ever said to be there."""
        return [self._shown(spec) for spec in self.configs()]

    @property
    def fault(self) -> str:
        """Why the file cannot be used, if it cannot."""
        return self._fault()

    @property
    def missing(self) -> str:
        """Why no model can answer, whichever is picked."""
        try:
            found = find_spec("pydantic_ai") and find_spec("httpx2")
        except ValueError:
            found = None
        return "" if found else f"Models need parts that are not installed. {loading.INSTALL}"

    async def model(self, picked: Picked) -> Model:
        """The model itself, ready to be asked."""
        spec = self.config(picked.provider)
        if not spec.enabled:
            raise _off(spec.name)
        clients = await self._ready()
        return await clients.model(spec, picked.model, self._settings().connections)

    async def begin_loading(self) -> None:
        """Have what is heavy loaded before a model is asked for; returns at once."""
        if self._clients is None and (self._loading is None or self._loading.done()):
            self._loading = asyncio.ensure_future(self._load())

    async def _load(self) -> None:
        # Why it cannot be loaded is told to whoever asks for a model.
        with contextlib.suppress(Exception):
            await self._ready()
            await asyncio.to_thread(loading.prepare)

    async def test(self, name: str) -> dict[str, Any]:
        """Ask a provider for its models and say how that went; never raises for what the provider does."""
        begun = time.monotonic()
        found: list[str] = []
        try:
            found = await self._list(name)
            kind, text = "", f"It answered and offers {len(found)} models."
        except NotFoundError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the libraries raise, it is told in our words
            trouble = self.explain(error)
            kind, text = trouble.kind, trouble.text
        seconds = round(time.monotonic() - begun, 3)
        return {"ok": not kind, "kind": kind, "text": text, "seconds": seconds, "models": found}

    async def refresh(self, name: str) -> list[str]:
        """The models the provider offers, asked of it and kept; an empty answer keeps what there was."""
        spec = self.config(name)
        try:
            found = await self._list(name)
        except ConfigError as error:
            raise ProviderError(str(error)) from error
        except CheckreinError:
            raise
        except Exception as error:
            trouble = self.explain(error)
            kind = ProviderSilentError if trouble.kind == "timeout" else ProviderError
            raise kind(trouble.text) from error
        if found and name != DEMO:
            await asyncio.to_thread(save_models, spec, tuple(found))
        return list(found or spec.models)

    def explain(self, error: BaseException) -> Trouble:
        """What went wrong, in plain words."""
        return explain(error, self._clients.secrets if self._clients else ())

    def set(self, name: str, kind: str, *, key: str | None = None, **fields: Any) -> dict[str, Any]:
        """Write a provider: what is not given, or None, stays as it was, a kept key too."""
        old = self._file().providers.get(name)
        before = {} if old is None or old.kind != kind else msgspec.to_builtins(old)
        given = {each: value for each, value in fields.items() if value is not None}
        raw = {each: value for each, value in {**before, **given}.items() if each != "name"}
        spec = provider_spec(name, {**raw, "kind": kind})
        if old is not None and spec.base_url != old.base_url and spec.key and not key:
            # INVARIANT: a key never goes to another address than the one it was given for.
            raise InputError(f"The address of {name!r} changes.", remedy="Give its key again with it.")
        return self._shown(save_provider(spec, key or ""))

    def remove(self, name: str) -> None:
        if name == DEMO:
            raise InputError("The built-in model cannot be removed.")
        remove_provider(name)

    def set_default(self, ref: str) -> Picked:
        """The model new conversations begin with; empty for none in particular."""
        if fixed := self._settings().chat.model:
            raise InputError(f"`chat.model` = {fixed!r} is in {user_file()}.", remedy="Change it there.")
        picked = self._named(ref) if ref else None
        save_default(picked.ref if picked else "")
        return picked or self._usual()

    def _usual(self) -> Picked:
        try:
            return self.pick()
        except CheckreinError:
            return Picked("", "")

    async def close(self) -> None:
        if self._clients is not None:
            await self._clients.close()

    async def _list(self, name: str) -> list[str]:
        spec = self.config(name)
        if spec.kind == "scripted":
            return list(spec.offered)
        clients = await self._ready()
        return await clients.names(spec, self._settings().connections)

    async def _ready(self) -> Clients:
        if self._clients is None:
            # What talks to models takes seconds to load; the loop goes on meanwhile.
            return self._kept(await asyncio.to_thread(loading.clients))
        return self._clients

    def _kept(self, made: Clients) -> Clients:
        # Somebody else may have been quicker.
        if self._clients is None:
            self._clients = made
        return self._clients

    def _named(self, ref: str) -> Picked:
        first, slash, rest = ref.partition("/")
        named = {spec.name: spec for spec in self.configs()}
        if slash and first in named and rest:
            return self._of(named[first], rest)
        if ref in named and named[ref].offered:
            return self._of(named[ref], named[ref].offered[0])
        holders = [spec for spec in named.values() if ref in spec.offered]
        usable = [spec for spec in holders if spec.enabled]
        if len(usable) == 1:
            return Picked(usable[0].name, ref)
        if usable:
            refs = " or ".join(f"{spec.name}/{ref}" for spec in usable)
            raise InputError(f"Several providers offer {ref!r}.", remedy=f"Say which: {refs}.")
        if holders:
            raise _off(holders[0].name)
        raise NotFoundError(f"There is no model {ref!r}.", remedy=self._fault() or _SEEN)

    def _of(self, spec: ProviderSpec, model: str) -> Picked:
        if not spec.enabled:
            raise _off(spec.name)
        if spec.kind == "scripted" and model not in (BUILT_IN.models if spec is BUILT_IN else spec.offered):
            raise NotFoundError(f"There is no model {spec.name}/{model}.", remedy=_SEEN)
        return Picked(spec.name, model)

    def _file(self) -> ProvidersFile:
        now = stamp()
        if self._read is None or self._read[0] != now:
            self._read = now, read_providers()
        return self._read[1]

    def _fault(self) -> str:
        return self._file().fault

    def _shown(self, spec: ProviderSpec) -> dict[str, Any]:
        fault = ""
        try:
            has_key = bool(key_of(spec))
        except ConfigError as error:
            has_key, fault = False, str(error)
        if is_literal(spec):
            fault = fault or f"Its key stands in {providers_file().name}; set it again and it is kept apart."
        fields = ("name", "kind", "base_url", "api_version", "deployment", "enabled", "default_model")
        shown = {name: getattr(spec, name) for name in fields}
        return {
            **shown,
            "has_key": has_key,
            "key_from": spec.key_from,
            "models": list(spec.models),
            "fault": fault,
        }


def _in_force() -> Settings:
    loaded = load()
    if loaded.error:
        # INVARIANT: while the settings cannot be read, nothing goes out another way than they say.
        raise loaded.error
    return loaded.settings


def _off(name: str) -> InputError:
    return InputError(
        f"The provider {name!r} is switched off.", remedy="Switch it on, or pick another model."
    )
